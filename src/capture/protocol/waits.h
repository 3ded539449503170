/* SPDX-License-Identifier: MIT */
/* System calls in which a thread can wait: what the recorder replaces in the C library (capture/control/traps.c), and what is done in their place
 * (capture/runtime/waits.c).
 *
 * X(NAME, HOW, ARGUMENT): SYS_NAME is done by wait_HOW with that argument. */
#ifndef CAPTURE_PROTOCOL_WAITS_H
#define CAPTURE_PROTOCOL_WAITS_H

/* clang-format off */
#define RT_WAITS(X) \
    X(read, file, POLLIN)           X(readv, file, POLLIN)         X(accept, file, POLLIN)      X(accept4, file, POLLIN) \
    X(recvfrom, received, 3)        X(recvmsg, received, 2) \
    X(write, written, 2)            X(writev, file, POLLOUT)       X(sendto, sent, 3)           X(sendmsg, sent, 2) \
    X(poll, poll, 0)                X(ppoll, ppoll, 0)             X(select, select, 0)         X(pselect6, pselect, 0) \
    X(epoll_wait, epoll, 0)         X(epoll_pwait, epoll, 0)       X(epoll_pwait2, epoll2, 0) \
    X(wait4, child, 2)              X(waitid, child, 3) \
    X(nanosleep, sleep, 0)          X(clock_nanosleep, sleep, 2)   X(sched_yield, yield, 0) \
    X(pause, signal, 0)             X(rt_sigsuspend, signal, 1)    X(rt_sigtimedwait, signal_of, 0) \
    X(flock, flock, 0)              X(fcntl, record_lock, 0) \
    X(msgrcv, message, 4)           X(msgsnd, message, 3)          X(semop, semaphore, 0)       X(semtimedop, semaphore, 3) \
    X(mq_timedreceive, queue, POLLIN) X(mq_timedsend, queue, POLLOUT) \
    X(open, open, 0)                X(openat, open, 1)             X(connect, connect, 0) \
    X(recvmmsg, elsewhere, 0)       X(sendmmsg, elsewhere, 0)      X(sendfile, elsewhere, 0)    X(splice, elsewhere, 0) \
    X(tee, elsewhere, 0)            X(vmsplice, elsewhere, 0)      X(io_getevents, elsewhere, 0) X(io_uring_enter, elsewhere, 0)
/* Only where they are not made by the C library: it waits so for other threads, in functions that are events. */
#define RT_WAITS_OUTSIDE(X) X(futex, futex, 0) X(futex_waitv, elsewhere, 0)
/* clang-format on */

#endif
