/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-azure-model.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

static usec_t now(const FakeAzure *f) {
        return loop_now(f->rest.loop);
}

void azure_new_id(FakeAzure *f, char ret[37]) {
        (void) snprintf(ret, 37, "9a5b5c2e-4f1d-4d38-9f6a-%012" PRIx64,
                        ++f->n_ids & UINT64_C(0xffffffffffff));
}

/* -- machines ------------------------------------------------------------------------------------------ */

AzureSet *azure_find_set(const FakeAzure *f, const char *name) {
        LIST_FOREACH (s, &f->sets, AzureSet, sets)
                if (strcasecmp(s->name, name) == 0)
                        return s;
        return NULL;
}

AzureVm *azure_find_vm(const FakeAzure *f, const AzureSet *set, const char *name) {
        LIST_FOREACH (vm, &f->vms, AzureVm, vms)
                if (vm->set == set && strcasecmp(vm->name, name) == 0)
                        return vm;
        return NULL;
}

bool azure_is_ending(const AzureVm *vm) {
        return vm->gone_usec != USEC_INFINITY;
}

void azure_delete_vm(FakeAzure *f, AzureVm *vm) {
        if (azure_is_ending(vm))
                return;
        vm->gone_usec = usec_add(now(f), f->delete_usec);
        if (vm->set)
                vm->set->capacity -= vm->set->capacity > 0;
}

static void vm_free(FakeAzure *f, AzureVm *vm) {
        list_remove(&f->vms, &vm->vms);
        free(vm->name);
        free(vm->flexible_set);
        free(vm->power);
        free(vm->vm_id);
        free(vm);
}

void azure_advance(FakeAzure *f) {
        LIST_FOREACH (vm, &f->vms, AzureVm, vms)
                if (vm->gone_usec <= now(f))
                        vm_free(f, vm);
}

/* -- operations ---------------------------------------------------------------------------------------- */

AzureOperation *azure_add_operation(FakeAzure *f, usec_t ends_usec, bool *ret_fails) {
        AzureOperation *o = MUST(new0(AzureOperation, 1));

        azure_new_id(f, o->id);
        o->started_usec = loop_wall(f->rest.loop);
        o->ends_usec = ends_usec;
        o->poll_usec = usec_add(now(f), f->retry_after_sec * USEC_PER_SEC);
        *ret_fails = f->n_failing > 0;
        if (*ret_fails) {
                f->n_failing--;
                o->code = MUST(strdup(f->failing_code));
                o->message = MUST(strdup(f->failing_message));
                o->ends_usec = o->poll_usec;
        }
        list_append(&f->operations, &o->operations);
        return o;
}

AzureOperation *azure_find_operation(const FakeAzure *f, const char *id) {
        LIST_FOREACH (o, &f->operations, AzureOperation, operations)
                if (strcasecmp(o->id, id) == 0)
                        return o;
        return NULL;
}

/* -- what tests do ------------------------------------------------------------------------------------- */

static char *or_else(const char *s, const char *otherwise) {
        return MUST(strdup(s ? s : otherwise));
}

FakeAzure *fake_azure_new(const FakeAzureOptions *o) {
        FakeAzure *f = MUST(new0(FakeAzure, 1));

        fake_rest_init(&f->rest, o->loop, o->token);
        f->subscription = or_else(o->subscription, FAKE_AZURE_SUBSCRIPTION);
        f->group = or_else(o->group, "vesper-rg");
        f->location = or_else(o->location, "westeurope");
        f->base_url = or_else(o->base_url, "https://management.azure.com");
        f->delete_usec = o->delete_usec > 0 ? o->delete_usec : 40 * USEC_PER_SEC;
        f->retry_after_sec = o->retry_after_sec > 0 ? o->retry_after_sec : 10;
        return f;
}

FakeAzure *fake_azure_free(FakeAzure *f) {
        if (!f)
                return NULL;
        LIST_FOREACH (vm, &f->vms, AzureVm, vms)
                vm_free(f, vm);
        LIST_FOREACH (s, &f->sets, AzureSet, sets) {
                free(s->name);
                free(s);
        }
        LIST_FOREACH (o, &f->operations, AzureOperation, operations) {
                free(o->code);
                free(o->message);
                free(o);
        }
        fake_rest_done(&f->rest);
        free(f->subscription);
        free(f->group);
        free(f->location);
        free(f->base_url);
        free(f->failing_code);
        free(f->failing_message);
        return mfree(f);
}

static void replace(char **dst, const char *src) {
        int r = free_and_strdup(dst, src);

        assert(r >= 0);
}

void fake_azure_set_base_url(FakeAzure *f, const char *url) {
        replace(&f->base_url, url);
}

static AzureVm *add_vm(FakeAzure *f, AzureSet *set, const char *name) {
        AzureVm *vm = MUST(new0(AzureVm, 1));
        char id[37];

        assert(!azure_find_vm(f, set, name));
        azure_new_id(f, id);
        vm->set = set;
        vm->name = MUST(strdup(name));
        vm->power = MUST(strdup("running"));
        vm->vm_id = MUST(strdup(id));
        vm->created_wall_usec = loop_wall(f->rest.loop);
        vm->gone_usec = USEC_INFINITY;
        list_append(&f->vms, &vm->vms);
        return vm;
}

void fake_azure_run(FakeAzure *f, const char *vm, const char *flexible_set) {
        replace(&add_vm(f, NULL, vm)->flexible_set, flexible_set);
}

void fake_azure_add_set(FakeAzure *f, const char *set) {
        AzureSet *s = MUST(new0(AzureSet, 1));

        assert(!azure_find_set(f, set));
        s->name = MUST(strdup(set));
        list_append(&f->sets, &s->sets);
}

void fake_azure_run_member(FakeAzure *f, const char *set, const char *instance_id) {
        AzureSet *s = MUST(azure_find_set(f, set));

        add_vm(f, s, instance_id);
        s->capacity++;
}

bool fake_azure_has_set(const FakeAzure *f, const char *set) {
        return azure_find_set(f, set);
}

unsigned fake_azure_capacity(FakeAzure *f, const char *set) {
        return MUST(azure_find_set(f, set))->capacity;
}

static AzureVm *look(FakeAzure *f, const char *set, const char *vm) {
        azure_advance(f);
        return azure_find_vm(f, set ? MUST(azure_find_set(f, set)) : NULL, vm);
}

void fake_azure_set_power(FakeAzure *f, const char *set, const char *vm, const char *power) {
        replace(&MUST(look(f, set, vm))->power, power);
}

const char *fake_azure_state(FakeAzure *f, const char *set, const char *vm) {
        const AzureVm *v = look(f, set, vm);

        return !v ? NULL : azure_is_ending(v) ? "deleting" : v->power;
}

void fake_azure_lock(FakeAzure *f, const char *set, const char *vm, bool lock) {
        MUST(look(f, set, vm))->locked = lock;
}

void fake_azure_set_dedicated(FakeAzure *f, const char *set, const char *vm, bool dedicated) {
        MUST(look(f, set, vm))->dedicated = dedicated;
}

size_t fake_azure_n_alive(FakeAzure *f) {
        size_t n = 0;

        azure_advance(f);
        LIST_FOREACH (vm, &f->vms, AzureVm, vms)
                n += !azure_is_ending(vm);
        return n;
}

void fake_azure_fail_operations(FakeAzure *f, unsigned n, const char *code, const char *message) {
        replace(&f->failing_code, code);
        replace(&f->failing_message, message);
        f->n_failing = n;
}

void fake_azure_set_location_only(FakeAzure *f, bool location_only) {
        f->location_only = location_only;
}

void fake_azure_set_link_bytes(FakeAzure *f, size_t n) {
        f->link_bytes = n;
}

size_t fake_azure_n_early_polls(const FakeAzure *f) {
        return f->n_early_polls;
}

FakeRest *fake_azure_rest(FakeAzure *f) {
        return &f->rest;
}

void fake_azure_throttle(FakeAzure *f, unsigned n, unsigned retry_after_sec) {
        fake_troubles_add(
                f->rest.troubles,
                &(FakeTrouble) { .kind = FAKE_TROUBLE_FAIL,
                                 .n = n,
                                 .status = 429,
                                 .code = "TooManyRequests",
                                 .message = "The request is being throttled as the limit has been reached.",
                                 .retry_after_usec = retry_after_sec * USEC_PER_SEC });
}
