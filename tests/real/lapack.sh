# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: MIT
# Fortran with OpenMP: the reduction of symmetric matrices to tridiagonal form in two stages is made of tasks that depend on
# each other. Of the four kinds of numbers only the double ones, of the tests those of eigenvalues.
package=lapack
commands=gfortran
build() {
    sed -e "s|^FC = .*|FC = $FC|" -e "s|^CC = .*|CC = $CC|" -e 's|^FFLAGS = .*|FFLAGS = -O2 -frecursive -fopenmp|' \
        -e 's|^LDFLAGS =.*|LDFLAGS = -fopenmp|' -e 's|^BLASLIB .*|BLASLIB = $(TOPSRCDIR)/librefblas.a|' make.inc.example >make.inc
    make -j2 -C BLAS/SRC double && make -C INSTALL slamch.o dlamch.o second_INT_ETIME.o dsecnd_INT_ETIME.o &&
        make -j2 -C SRC double && make -j2 -C TESTING/MATGEN double && make -j2 -C TESTING/EIG double
}
run_eig() { # INPUT…
    local i
    for i; do
        echo "== $i"
        TESTING/EIG/xeigtstd <"TESTING/$i" >out || return 1
        cat out
        grep -q 'End of tests' out && ! grep -q 'failed to pass' out || return 1
    done
}
suite() { run_eig nep.in sep.in se2.in svd.in dsb.in dsg.in; }
part() { run_eig dsb.in; }
