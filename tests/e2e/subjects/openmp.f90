! SPDX-License-Identifier: MIT
! OpenMP in Fortran, with four threads: for tests/e2e/runtime.sh.
program openmp
    use omp_lib
    implicit none
    integer, parameter :: n = 1000
    integer :: i, critical, locked
    integer(omp_lock_kind) :: lock
    real(8) :: a(n), total

    critical = 0
    locked = 0
    total = 0
    call omp_init_lock(lock)
    !$omp parallel num_threads(4) private(i)
    !$omp do schedule(dynamic, 10)
    do i = 1, n
        a(i) = sqrt(real(i, 8))
    end do
    !$omp end do
    !$omp critical
    critical = critical + 1
    !$omp end critical
    call omp_set_lock(lock)
    locked = locked + 1
    call omp_unset_lock(lock)
    !$omp barrier
    !$omp single
    a(1) = 2
    !$omp end single
    !$omp end parallel
    !$omp parallel do reduction(+ : total) num_threads(4)
    do i = 1, n
        total = total + a(i)
    end do
    call omp_destroy_lock(lock)
    print '(I0, 1X, I0, 1X, F12.3)', critical, locked, total
    call exit(7)
end program openmp
