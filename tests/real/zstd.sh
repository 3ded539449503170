# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: MIT
# A pool of threads; code with assembly and intrinsics. The short form of its tests takes minutes: of these nothing but a
# round trip with four threads is recorded.
package=libzstd
commands="file"
build() { make -j2 -C tests zstd datagen; }
suite() { make -C tests check; }
part() {
    tests/datagen -g1M >part.in &&
        programs/zstd -T4 -3 -q -f -B128K part.in -o part.zst &&
        programs/zstd -T4 -9 -q -f -B256K part.in -o part.zst9 &&
        programs/zstd -d -q -f part.zst -o part.out && cmp part.in part.out &&
        programs/zstd -d -q -f part.zst9 -o part.out && cmp part.in part.out
}
profiled() { tests/datagen -g300K >profile.in && ${profile:?} programs/zstd -T4 -3 -q -f -B64K profile.in -o profile.zst; }
functions="ZSTD_compressBlock_doubleFast.* HUF_.*"
data="workspace cctx job"
