/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc-coordinator.h"
#include "cmocka-test.h"

void __wrap_fake_cluster_handle(HttpExchange *x, void *userdata);
void __real_fake_cluster_handle(HttpExchange *x, void *userdata);
void __wrap_fake_ec2_handle(HttpExchange *x, void *userdata);
void __real_fake_ec2_handle(HttpExchange *x, void *userdata);

void __wrap_fake_cluster_handle(HttpExchange *x, void *userdata) {
        alloc_fault_pause();
        __real_fake_cluster_handle(x, userdata);
        alloc_fault_resume();
}

void __wrap_fake_ec2_handle(HttpExchange *x, void *userdata) {
        alloc_fault_pause();
        __real_fake_ec2_handle(x, userdata);
        alloc_fault_resume();
}

void alloc_run_coordinator(CoordinatorRig *r, usec_t usec) {
        usec_t until = usec_add(virtual_time_now(r->w.time), usec);
        const Loop *next;
        int code;

        while ((next = virtual_time_next(r->w.time, until))) {
                bool ours = r->coordinators[0] && next == r->coordinators[0]->loop;

                if (ours)
                        alloc_fault_resume();
                virtual_time_step(r->w.time, until);
                if (ours)
                        alloc_fault_pause();
                if (ours && loop_has_exited(next, &code)) {
                        assert_true(code < 0 && alloc_fault_fired());
                        rig_kill(r, 0);
                        alloc_run_coordinator(r, RESTART_USEC);
                        alloc_start_coordinator(r);
                }
        }
        virtual_time_step(r->w.time, until); /* time stands at the limit now */
}

void alloc_start_coordinator(CoordinatorRig *r) {
        unsigned lives = 0;
        int k;

        do {
                assert_true(lives == 0 || alloc_fault_fired()); /* only for want of memory */
                assert_true(lives++ < 3);
                rig_make(r, 0);
                alloc_fault_resume();
                k = rig_try_start(r, 0);
                alloc_fault_pause();
                if (k < 0)
                        alloc_run_coordinator(r, RESTART_USEC);
        } while (k < 0);
}
