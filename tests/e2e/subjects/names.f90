! SPDX-License-Identifier: MIT
! Data of Fortran: for objects.sh.
module field
  implicit none
  real(8), allocatable :: grid(:,:)
  real(8) :: fixed(64,32), below(-200:99)
  type particle
     real(8) :: x(3), mass
  end type
contains
  subroutine sweep(n)
    integer, intent(in) :: n
    integer :: i, j
    do j = 2, n - 1
       do i = 2, n - 1
          grid(i,j) = 0.25d0 * (grid(i-1,j) + grid(i+1,j) + grid(i,j-1) + grid(i,j+1))
       end do
    end do
    fixed(:,3) = fixed(:,3) + grid(1:64,2)
  end subroutine
end module
program heat
  use field
  implicit none
  type(particle), allocatable :: p(:)
  real(8), allocatable :: first(:), second(:)
  integer, allocatable :: third(:)
  real(8) :: weights(5000)
  integer :: k, c
  common /shared/ c
  allocate(grid(100,100))
  allocate(p(500))
  allocate(first(400)); allocate(second(300)); allocate(third(200))
  grid = 1
  c = 3
  below = 1
  below(-200) = 2
  first = 1; second = 2; third = 3
  do k = 1, 3
     call sweep(100)
  end do
  do k = 1, 500
     p(k)%mass = k
     weights(k) = p(k)%mass * 2
  end do
  print *, sum(grid), sum(p%mass), sum(weights(1:500)), fixed(1,3), c, sum(below), &
       sum(first), sum(second), sum(third)
end program
