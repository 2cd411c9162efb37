/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-azure.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

#include "fake-azure-model.h"
#include "parse-util.h"
#include "strv.h"

#define PROVIDER "providers/Microsoft.Compute/"
#define ARGS_MAX 2
#define REQUEST_ID "5c1f4c1b-8c1b-4d4c-9a50-0f9a7ddf2f11"

typedef struct Request {
        FakeAzure *f;
        HttpExchange *x;
        FakeQuery query;
        const char *args[ARGS_MAX];
        cJSON *body;
} Request;

/* -- answers ------------------------------------------------------------------------------------------- */

static void send(HttpExchange *x, unsigned status, const HttpHeader *headers, size_t n_headers,
                 const cJSON *o) {
        HttpHeader all[FAKE_REST_HEADERS_MAX] = {
                { "x-ms-request-id", REQUEST_ID },
                { "x-ms-correlation-request-id", REQUEST_ID },
        };

        assert(n_headers + 2 <= FAKE_REST_HEADERS_MAX);
        for (size_t i = 0; i < n_headers; i++)
                all[i + 2] = headers[i];
        fake_rest_reply(x, status, all, n_headers + 2, o);
}

static cJSON *error_json(const char *code, const char *message) {
        cJSON *o = MUST(cJSON_CreateObject());

        fj_set_string(fj_object(o, "error"), "code", code);
        fj_set_string(fj_object(o, "error"), "message", message);
        return o;
}

/* retry_after_usec 0: not said. */
static void send_error(HttpExchange *x, unsigned status, const char *code, const char *message,
                       usec_t retry_after_usec) {
        _cleanup_cjson_ cJSON *o = error_json(code, message);
        char seconds[24];
        HttpHeader headers[2];
        size_t n = 0;

        (void) snprintf(seconds, sizeof(seconds), "%" PRIu64, retry_after_usec / USEC_PER_SEC);
        if (status == 401)
                headers[n++] = (HttpHeader) { "WWW-Authenticate",
                                              "Bearer authorization_uri=\"https://login.windows.net/\"" };
        if (retry_after_usec > 0)
                headers[n++] = (HttpHeader) { "Retry-After", seconds };
        send(x, status, headers, n, o);
}

_printf_(4, 5) static void refuse(Request *r, unsigned status, const char *code, const char *fmt, ...) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        va_list ap;

        va_start(ap, fmt);
        strbuf_addv(&b, fmt, ap);
        va_end(ap);
        send_error(r->x, status, code, strbuf_str(&b), 0);
}

static void refuse_no_resource(Request *r, const char *type, const char *name) {
        refuse(r, 404, "ResourceNotFound",
               "The Resource 'Microsoft.Compute/%s/%s' under resource group '%s' was not found. For more "
               "details please "
               "go to https://aka.ms/ARMResourceNotFoundFix",
               type, name, r->f->group);
}

static void refuse_no_member(Request *r, const char *id) {
        refuse(r, 404, "NotFound", "The entity was not found in this Azure location. (instance %s)", id);
}

/* Location and Azure-AsyncOperation lead to the same operation by different ways. */
static char *link_to(const FakeAzure *f, const AzureOperation *o, const char *query) {
        StrBuf b = { 0 };

        strbuf_addf(&b,
                    "%s/subscriptions/%s/" PROVIDER "locations/%s/operations/%s?%sapi-version=2024-07-01",
                    f->base_url, f->subscription, f->location, o->id, query);
        if (b.size < f->link_bytes) {
                strbuf_add(&b, "&c=");
                while (b.size < f->link_bytes)
                        strbuf_add_char(&b, 'M');
        }
        return MUST(strbuf_steal(&b));
}

static void reply_accepted(Request *r, const AzureOperation *o) {
        _cleanup_free_ char *location = link_to(r->f, o, "monitor=true&"), *async = link_to(r->f, o, "");
        char seconds[16];
        HttpHeader headers[] = {
                { "Location", location },
                { "Retry-After", seconds },
                { "Azure-AsyncOperation", async },
        };

        (void) snprintf(seconds, sizeof(seconds), "%u", r->f->retry_after_sec);
        send(r->x, 202, headers, r->f->location_only ? 2 : 3, NULL);
}

/* -- machines ------------------------------------------------------------------------------------------ */

static char *vm_resource_id(const FakeAzure *f, const AzureVm *vm) {
        if (vm->set)
                return MUST(strf("/subscriptions/%s/resourceGroups/%s/" PROVIDER
                                 "virtualMachineScaleSets/%s/virtualMachines/%s",
                                 f->subscription, f->group, vm->set->name, vm->name));
        return MUST(strf("/subscriptions/%s/resourceGroups/%s/" PROVIDER "virtualMachines/%s",
                         f->subscription, f->group, vm->name));
}

static void add_status(cJSON *view, const char *kind, const char *value) {
        cJSON *s = fj_parse("{'level':'Info'}");
        _cleanup_free_ char *code = MUST(strf("%s/%s", kind, value));

        fj_set_string(s, "code", code);
        fj_set_string(s, "displayStatus", value);
        cJSON_AddItemToArray(fj_array(view, "statuses"), s);
}

static cJSON *view_json(const AzureVm *vm) {
        cJSON *o = MUST(cJSON_CreateObject());

        add_status(o, "ProvisioningState", azure_is_ending(vm) ? "deleting" : "succeeded");
        add_status(o, "PowerState",
                   azure_is_ending(vm) && streq(vm->power, "running") ? "stopping" : vm->power);
        return o;
}

static cJSON *vm_json(const FakeAzure *f, const AzureVm *vm, bool view) {
        _cleanup_free_ char *id = vm_resource_id(f, vm), *name = NULL, *set = NULL;
        cJSON *o = MUST(cJSON_CreateObject()), *properties = fj_object(o, "properties");
        char created[RFC3339_MAX];

        name = vm->set ? MUST(strf("%s_%s", vm->set->name, vm->name)) : MUST(strdup(vm->name));
        rfc3339_format(vm->created_wall_usec, created);
        fj_set_string(o, "id", id);
        fj_set_string(o, "name", name);
        if (vm->set)
                fj_set_string(o, "instanceId", vm->name);
        fj_set_string(o, "type",
                      vm->set ? "Microsoft.Compute/virtualMachineScaleSets/virtualMachines"
                              : "Microsoft.Compute/virtualMachines");
        fj_set_string(o, "location", f->location);
        fj_set_string(properties, "vmId", vm->vm_id);
        fj_set_string(properties, "provisioningState", azure_is_ending(vm) ? "Deleting" : "Succeeded");
        fj_set_string(properties, "timeCreated", created);
        if (vm->flexible_set) {
                set = MUST(strf("/subscriptions/%s/resourceGroups/%s/" PROVIDER "virtualMachineScaleSets/%s",
                                f->subscription, f->group, vm->flexible_set));
                fj_set_string(fj_object(properties, "virtualMachineScaleSet"), "id", set);
        }
        if (view)
                fj_set(properties, "instanceView", view_json(vm));
        return o;
}

/* NULL: the error was sent. */
static AzureVm *take_vm(Request *r) {
        AzureVm *vm = azure_find_vm(r->f, NULL, r->args[0]);

        if (!vm)
                refuse_no_resource(r, "virtualMachines", r->args[0]);
        return vm;
}

static AzureSet *take_set(Request *r) {
        AzureSet *set = azure_find_set(r->f, r->args[0]);

        if (!set)
                refuse_no_resource(r, "virtualMachineScaleSets", r->args[0]);
        return set;
}

/* The set of a member. That it is not there is said in other words, and proves nothing of the member. */
static AzureSet *take_parent(Request *r) {
        AzureSet *set = azure_find_set(r->f, r->args[0]);

        if (!set)
                refuse(r, 404, "ParentResourceNotFound",
                       "Can not perform requested operation on nested resource. Parent resource '%s' not "
                       "found.",
                       r->args[0]);
        return set;
}

static AzureVm *take_member(Request *r) {
        const AzureSet *set = take_parent(r);
        AzureVm *vm = set ? azure_find_vm(r->f, set, r->args[1]) : NULL;

        if (set && !vm)
                refuse_no_member(r, r->args[1]);
        return vm;
}

static void reply_vm(Request *r, const AzureVm *vm) {
        const char *expand = fake_query_get(&r->query, "$expand");
        _cleanup_cjson_ cJSON *o = NULL;

        if (!vm)
                return;
        if (expand && strcasecmp(expand, "instanceView") != 0)
                return refuse(r, 400, "InvalidParameter", "The value '%s' of parameter $expand is invalid.",
                              expand);
        o = vm_json(r->f, vm, expand);
        send(r->x, 200, NULL, 0, o);
}

static void reply_view(Request *r, const AzureVm *vm) {
        _cleanup_cjson_ cJSON *o = vm ? view_json(vm) : NULL;

        if (vm)
                send(r->x, 200, NULL, 0, o);
}

static void get_vm(Request *r) {
        reply_vm(r, take_vm(r));
}

static void get_vm_view(Request *r) {
        reply_view(r, take_vm(r));
}

static void get_member(Request *r) {
        reply_vm(r, take_member(r));
}

static void get_member_view(Request *r) {
        reply_view(r, take_member(r));
}

#define PAGE_SIZE 50u

static void list_vms(Request *r, const AzureSet *set) {
        const char *skip = fake_query_get(&r->query, "$skiptoken");
        _cleanup_cjson_ cJSON *o = MUST(cJSON_CreateObject());
        _cleanup_free_ char *next = NULL;
        uint64_t first = 0, n = 0;

        if (skip && parse_uint64(skip, &first) < 0)
                return refuse(r, 400, "InvalidSkipToken", "The skip token '%s' is invalid.", skip);
        fj_array(o, "value");
        LIST_FOREACH (vm, &r->f->vms, AzureVm, vms) {
                if (vm->set != set)
                        continue;
                if (n >= first && n < first + PAGE_SIZE)
                        cJSON_AddItemToArray(fj_array(o, "value"), vm_json(r->f, vm, false));
                n++;
        }
        if (n > first + PAGE_SIZE) {
                next = MUST(strf("%s%s?api-version=%s&%%24skiptoken=%" PRIu64, r->f->base_url, r->x->path,
                                 fake_query_get(&r->query, "api-version"), first + PAGE_SIZE));
                fj_set_string(o, "nextLink", next);
        }
        send(r->x, 200, NULL, 0, o);
}

static void list_own(Request *r) {
        list_vms(r, NULL);
}

static void list_members(Request *r) {
        const AzureSet *set = take_set(r);

        if (set)
                list_vms(r, set);
}

static void get_set(Request *r) {
        const AzureSet *set = take_set(r);
        _cleanup_cjson_ cJSON *o = NULL;
        _cleanup_free_ char *id = NULL;

        if (!set)
                return;
        o = fj_parse("{'type':'Microsoft.Compute/virtualMachineScaleSets','sku':{'name':'Standard_D4s_v5',"
                     "'tier':'Standard'},'properties':{'orchestrationMode':'Uniform','provisioningState':'"
                     "Succeeded'}}");
        id = MUST(strf("/subscriptions/%s/resourceGroups/%s/" PROVIDER "virtualMachineScaleSets/%s",
                       r->f->subscription, r->f->group, set->name));
        fj_set_string(o, "id", id);
        fj_set_string(o, "name", set->name);
        fj_set_string(o, "location", r->f->location);
        fj_set_int(fj_object(o, "sku"), "capacity", set->capacity);
        send(r->x, 200, NULL, 0, o);
}

/* -- deleting ------------------------------------------------------------------------------------------ */

/* False: refused, and the error was sent. */
static bool may_delete(Request *r, const AzureVm *vm) {
        _cleanup_free_ char *id = vm_resource_id(r->f, vm);
        const char *force = fake_query_get(&r->query, "forceDeletion");

        if (vm->locked) {
                refuse(r, 409, "ScopeLocked",
                       "The scope '%s' cannot perform delete operation because following scope(s) are "
                       "locked: '%s'. Please "
                       "remove the lock and try again.",
                       id, id);
                return false;
        }
        if (force && strcasecmp(force, "true") == 0 && vm->dedicated) {
                refuse(r, 409, "OperationNotAllowed",
                       "Operation 'forceDelete' is not allowed on VM '%s' since it is on a dedicated host.",
                       vm->name);
                return false;
        }
        return true;
}

static void accept_delete(Request *r, AzureVm *const *vms, size_t n_vms) {
        usec_t ends = usec_add(loop_now(r->f->rest.loop), r->f->delete_usec);
        AzureOperation *o;
        bool fails;

        /* A second delete waits for the first. */
        if (n_vms == 1)
                ends = MIN(ends, vms[0]->gone_usec);
        o = azure_add_operation(r->f, ends, &fails);
        for (size_t i = 0; i < n_vms && !fails; i++)
                azure_delete_vm(r->f, vms[i]);
        reply_accepted(r, o);
}

/* 204: it did not exist, which is a success. */
static void delete_one(Request *r, AzureVm *vm) {
        const char *force = fake_query_get(&r->query, "forceDeletion");

        if (force && strcasecmp(force, "true") != 0 && strcasecmp(force, "false") != 0)
                return refuse(r, 400, "InvalidParameter",
                              "The value '%s' of parameter forceDeletion is invalid.", force);
        if (!vm)
                return send(r->x, 204, NULL, 0, NULL);
        if (may_delete(r, vm))
                accept_delete(r, &vm, 1);
}

static void delete_vm(Request *r) {
        delete_one(r, azure_find_vm(r->f, NULL, r->args[0]));
}

static void delete_member(Request *r) {
        const AzureSet *set = take_parent(r);

        if (set)
                delete_one(r, azure_find_vm(r->f, set, r->args[1]));
}

/* The members that the body names; NULL: the error was sent. Free it. */
static AzureVm **take_members(Request *r, const AzureSet *set, size_t *ret_n) {
        const cJSON *ids = fj_member(r->body, "instanceIds"), *id;
        _cleanup_free_ AzureVm **vms = NULL;
        size_t n = 0;

        if (cJSON_GetArraySize(ids) == 0) {
                refuse(r, 400, "InvalidParameter", "Required parameter 'instanceIds' is missing (null).");
                return NULL;
        }
        vms = MUST(new0(AzureVm *, (size_t) cJSON_GetArraySize(ids)));
        cJSON_ArrayForEach (id, ids) {
                AzureVm *vm = cJSON_IsString(id) ? azure_find_vm(r->f, set, id->valuestring) : NULL;

                if (!vm) {
                        refuse(r, 400, "InvalidParameter",
                               "The provided instanceId %s is not an active Virtual Machine Scale Set VM "
                               "instanceId.",
                               cJSON_IsString(id) ? id->valuestring : "(no string)");
                        return NULL;
                }
                vms[n++] = vm;
        }
        *ret_n = n;
        return TAKE_PTR(vms);
}

static void delete_members(Request *r) {
        const AzureSet *set = take_set(r);
        _cleanup_free_ AzureVm **vms = NULL;
        size_t n = 0;

        if (!set)
                return;
        vms = take_members(r, set, &n);
        if (!vms)
                return;
        for (size_t i = 0; i < n; i++)
                if (!may_delete(r, vms[i]))
                        return;
        accept_delete(r, vms, n);
}

/* Only the compute goes: disks, name and the place in the set stay. */
static void deallocate(Request *r, AzureVm *vm) {
        bool fails;
        AzureOperation *o = azure_add_operation(r->f, loop_now(r->f->rest.loop) + r->f->delete_usec, &fails);
        int k = fails ? 0 : free_and_strdup(&vm->power, "deallocated");

        assert(k >= 0);
        reply_accepted(r, o);
}

static void deallocate_vm(Request *r) {
        AzureVm *vm = take_vm(r);

        if (vm)
                deallocate(r, vm);
}

static void deallocate_members(Request *r) {
        const AzureSet *set = take_set(r);
        _cleanup_free_ AzureVm **vms = NULL;
        size_t n = 0;

        vms = set ? take_members(r, set, &n) : NULL;
        for (size_t i = 1; i < n; i++) {
                int k = free_and_strdup(&vms[i]->power, "deallocated");

                assert(k >= 0);
        }
        if (vms)
                deallocate(r, vms[0]);
}

/* -- operations ---------------------------------------------------------------------------------------- */

static void reply_location(Request *r, const AzureOperation *o, bool ended) {
        if (!ended)
                reply_accepted(r, o);
        else if (o->code)
                refuse(r, 409, o->code, "%s", o->message);
        else
                send(r->x, 204, NULL, 0, NULL);
}

static void reply_async(Request *r, const AzureOperation *o, bool ended) {
        _cleanup_cjson_ cJSON *body = NULL;
        char time[RFC3339_MAX], seconds[16];
        HttpHeader header = { "Retry-After", seconds };

        body = o->code && ended ? error_json(o->code, o->message) : MUST(cJSON_CreateObject());
        rfc3339_format(o->started_usec, time);
        (void) snprintf(seconds, sizeof(seconds), "%u", r->f->retry_after_sec);
        fj_set_string(body, "startTime", time);
        fj_set_string(body, "name", o->id);
        fj_set_string(body, "status", !ended ? "InProgress" : o->code ? "Failed" : "Succeeded");
        send(r->x, 200, &header, ended ? 0 : 1, body);
}

static void get_operation(Request *r) {
        const char *monitor = fake_query_get(&r->query, "monitor");
        AzureOperation *o = azure_find_operation(r->f, r->args[1]);
        usec_t now = loop_now(r->f->rest.loop);

        if (!o || strcasecmp(r->args[0], r->f->location) != 0)
                return refuse(r, 404, "NotFound", "The operation '%s' was not found.", r->args[1]);
        r->f->n_early_polls += now < o->poll_usec && now < o->ends_usec;
        o->poll_usec = usec_add(now, r->f->retry_after_sec * USEC_PER_SEC);
        if (streq_ptr(monitor, "true"))
                reply_location(r, o, now >= o->ends_usec);
        else
                reply_async(r, o, now >= o->ends_usec);
}

/* -- a request ----------------------------------------------------------------------------------------- */

#define IN_GROUP true
#define IN_SUBSCRIPTION false

static const struct Route {
        const char *name;
        HttpMethod method;
        bool in_group;
        const char *pattern; /* behind the subscription, or the group, and the provider */
        const char *query[2];
        void (*act)(Request *r);
} routes[] = {
        { "virtualMachines.list", HTTP_GET, IN_GROUP, "virtualMachines", { "$skiptoken" }, list_own },
        { "virtualMachines.get", HTTP_GET, IN_GROUP, "virtualMachines/*", { "$expand" }, get_vm },
        { "virtualMachines.instanceView",
          HTTP_GET,
          IN_GROUP,
          "virtualMachines/*/instanceView",
          { NULL },
          get_vm_view },
        { "virtualMachines.delete",
          HTTP_DELETE,
          IN_GROUP,
          "virtualMachines/*",
          { "forceDeletion" },
          delete_vm },
        { "virtualMachines.deallocate",
          HTTP_POST,
          IN_GROUP,
          "virtualMachines/*/deallocate",
          { "hibernate" },
          deallocate_vm },
        { "virtualMachineScaleSets.get",
          HTTP_GET,
          IN_GROUP,
          "virtualMachineScaleSets/*",
          { NULL },
          get_set },
        { "virtualMachineScaleSets.deleteInstances",
          HTTP_POST,
          IN_GROUP,
          "virtualMachineScaleSets/*/delete",
          { "forceDeletion" },
          delete_members },
        { "virtualMachineScaleSets.deallocate",
          HTTP_POST,
          IN_GROUP,
          "virtualMachineScaleSets/*/deallocate",
          { NULL },
          deallocate_members },
        { "virtualMachineScaleSetVMs.list",
          HTTP_GET,
          IN_GROUP,
          "virtualMachineScaleSets/*/virtualMachines",
          { "$skiptoken" },
          list_members },
        { "virtualMachineScaleSetVMs.get",
          HTTP_GET,
          IN_GROUP,
          "virtualMachineScaleSets/*/virtualMachines/*",
          { "$expand" },
          get_member },
        { "virtualMachineScaleSetVMs.instanceView",
          HTTP_GET,
          IN_GROUP,
          "virtualMachineScaleSets/*/virtualMachines/*/instanceView",
          { NULL },
          get_member_view },
        { "virtualMachineScaleSetVMs.delete",
          HTTP_DELETE,
          IN_GROUP,
          "virtualMachineScaleSets/*/virtualMachines/*",
          { "forceDeletion" },
          delete_member },
        { "operations.get",
          HTTP_GET,
          IN_SUBSCRIPTION,
          "locations/*/operations/*",
          { "monitor", "c" },
          get_operation },
};

static const struct Route *find_route(Request *r, char *const *path, bool in_group) {
        for (size_t i = 0; i < ELEMENTSOF(routes); i++)
                if (routes[i].method == r->x->method && routes[i].in_group == in_group &&
                    fake_path_is(path, routes[i].pattern, true, r->args, ARGS_MAX))
                        return &routes[i];
        return NULL;
}

/* False: refused. */
static bool check_bearer(Request *r) {
        switch (fake_rest_bearer(&r->f->rest, r->x)) {
        case FAKE_BEARER_GOOD:
                return true;
        case FAKE_BEARER_MISSING:
                refuse(r, 401, "AuthenticationFailed",
                       "Authentication failed. The 'Authorization' header is missing.");
                return false;
        case FAKE_BEARER_UNKNOWN:
                refuse(r, 401, "InvalidAuthenticationToken", "The access token is invalid.");
                return false;
        case FAKE_BEARER_EXPIRED:
                refuse(r, 401, "ExpiredAuthenticationToken",
                       "The access token expiry UTC time is earlier than current UTC time.");
                return false;
        }
        return false;
}

/* "2024-07-01", perhaps with "-preview". */
static bool is_api_version(const char *s) {
        static const char form[] = "dddd-dd-dd";

        for (size_t i = 0; form[i]; i++)
                if (form[i] == 'd' ? s[i] < '0' || s[i] > '9' : s[i] != form[i])
                        return false;
        return !s[10] || streq(s + 10, "-preview");
}

/* False: refused. */
static bool check_api_version(Request *r) {
        const char *version = fake_query_get(&r->query, "api-version");

        if (isempty(version))
                refuse(r, 400, "MissingApiVersionParameter",
                       "The api-version query parameter (?api-version=) is required for all requests.");
        else if (!is_api_version(version))
                refuse(r, 400, "InvalidApiVersionParameter", "The api-version '%s' is invalid.", version);
        else
                return true;
        return false;
}

static void send_trouble(HttpExchange *x, const FakeTrouble *t) {
        send_error(x, t->status, t->code, t->message, t->retry_after_usec);
}

/* How many segments stand before the provider's own: 0: refused, and the error was sent. */
static size_t check_place(Request *r, char *const *path, size_t n, bool *ret_in_group) {
        *ret_in_group = n > 3 && strcasecmp(path[2], "resourceGroups") == 0;
        if (n < 6 || strcasecmp(path[0], "subscriptions") != 0 ||
            strcasecmp(path[*ret_in_group ? 4 : 2], "providers") != 0) {
                refuse(r, 404, "InvalidResourceType", "%s is not played here.", r->x->path);
                return 0;
        }
        if (strcasecmp(path[1], r->f->subscription) != 0) {
                refuse(r, 404, "SubscriptionNotFound", "The subscription '%s' could not be found.", path[1]);
                return 0;
        }
        if (*ret_in_group && strcasecmp(path[3], r->f->group) != 0) {
                refuse(r, 404, "ResourceGroupNotFound", "Resource group '%s' could not be found.", path[3]);
                return 0;
        }
        if (strcasecmp(path[*ret_in_group ? 5 : 3], "Microsoft.Compute") != 0) {
                refuse(r, 404, "InvalidResourceNamespace", "The resource namespace '%s' is invalid.",
                       path[*ret_in_group ? 5 : 3]);
                return 0;
        }
        return *ret_in_group ? 6 : 4;
}

static bool is_known_query(const Request *r, const struct Route *route) {
        const char *known[ELEMENTSOF(route->query) + 1] = { "api-version" };

        for (size_t i = 0; i < ELEMENTSOF(route->query); i++)
                known[i + 1] = route->query[i];
        return !r->query.repeated && !fake_query_unknown(&r->query, known, ELEMENTSOF(known));
}

static void handle(Request *r, char *const *path) {
        const struct Route *route;
        bool in_group;
        size_t before;

        if (!check_bearer(r) || !check_api_version(r))
                return;
        azure_advance(r->f);
        before = check_place(r, path, strv_length(path), &in_group);
        if (before == 0)
                return;
        route = find_route(r, path + before, in_group);
        if (!route)
                return refuse(r, 404, "InvalidResourceType", "%s %s is not played here.",
                              http_method_to_string(r->x->method), r->x->path);
        if (fake_rest_play_trouble(&r->f->rest, route->name, &r->x, send_trouble))
                return;
        /* Azure passes over what it does not know. */
        if (!is_known_query(r, route))
                return refuse(r, 400, "InvalidParameter",
                              "The query '%s' has parameters that are not known here.", r->x->query);
        if (r->x->body_size > 0 && !cJSON_IsObject(r->body))
                return refuse(r, 400, "InvalidRequestContent", "The request content was invalid.");
        route->act(r);
}

void fake_azure_handle(HttpExchange *x, void *fake_azure) {
        Request r = { .f = fake_azure, .x = x };
        _cleanup_strv_free_ char **path = fake_path_split(x->path);

        fake_query_init(&r.query, x->query);
        if (x->body_size > 0)
                r.body = cJSON_ParseWithLength(x->body, x->body_size);
        handle(&r, path);
        fake_query_done(&r.query);
        cJSON_Delete(r.body);
}
