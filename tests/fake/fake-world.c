/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "fake-controllers.h"
#include "fake-strategy.h"

/* The test's own hand in the cluster: objects got, put and made past every rule. */

const cJSON *fake_get(FakeCluster *c, FakeResourceId id, const char *ns, const char *name) {
        return fake_store_get(c->store, id, ns, name);
}

size_t fake_count(FakeCluster *c, FakeResourceId id) {
        return fake_store_size(c->store, id);
}

static void fill_meta(FakeCluster *c, const FakeResource *r, cJSON *object, const cJSON *old) {
        cJSON *meta = fj_object(object, "metadata");
        char text[RFC3339_MAX], uid[UUID_MAX];

        if (old) {
                fj_set_copy(meta, "uid", fj_get(old, "metadata", "uid", NULL));
                fj_set_copy(meta, "creationTimestamp", fj_get(old, "metadata", "creationTimestamp", NULL));
        }
        if (!fj_member(meta, "uid")) {
                random_uuid(c->random, uid);
                fj_set_string(meta, "uid", uid);
        }
        if (!fj_member(meta, "creationTimestamp"))
                fj_set_string(meta, "creationTimestamp", fake_store_timestamp(c->store, text));
        if (r->has_generation && !fj_member(meta, "generation"))
                fj_set_int(meta, "generation", fj_int(old, 0, "metadata", "generation", NULL) + 1);
}

void fake_put(FakeCluster *c, FakeResourceId id, cJSON *object) {
        const FakeResource *r = fake_resource(id);
        cJSON *meta = fj_object(object, "metadata");
        const cJSON *old;

        fj_remove(object, "kind");
        fj_remove(object, "apiVersion");
        if (!r->namespaced)
                fj_remove(meta, "namespace");
        else if (isempty(fj_string(meta, "namespace", NULL)))
                fj_set_string(meta, "namespace", "default");
        old = fake_store_get(c->store, id, fj_string(meta, "namespace", NULL),
                             fj_string(meta, "name", NULL));
        fill_meta(c, r, object, old);
        if (old)
                fake_store_update(c->store, id, object);
        else
                fake_store_create(c->store, id, object);
}

void fake_create(FakeCluster *c, FakeResourceId id, cJSON *object) {
        _cleanup_reply_ FakeReply reply = { 0 };
        const FakeResource *r = fake_resource(id);
        char uid[UUID_MAX];

        random_uuid(c->random, uid);
        fj_set_string(fj_object(object, "metadata"), "uid", uid);
        fake_strategy_prepare_create(c->store, r, object);
        if (!fake_strategy_validate_create(r, object, &reply))
                assert(false && "a controller made an object that is not valid");
        fake_store_create(c->store, id, object);
}

static void merge(cJSON *target, const cJSON *patch) {
        const cJSON *p;

        cJSON_ArrayForEach (p, patch)
                if (cJSON_IsNull(p))
                        fj_remove(target, p->string);
                else if (cJSON_IsObject(p))
                        merge(fj_object(target, p->string), p);
                else
                        fj_set_copy(target, p->string, p);
}

void fake_merge(FakeCluster *c, FakeResourceId id, const char *ns, const char *name, const char *fmt, ...) {
        _cleanup_cjson_ cJSON *patch = NULL;
        _cleanup_free_ char *text = NULL;
        const cJSON *old = MUST(fake_get(c, id, ns, name));
        cJSON *object = fj_copy(old);
        va_list ap;
        int r;

        va_start(ap, fmt);
        r = vasprintf(&text, fmt, ap);
        va_end(ap);
        assert(r >= 0);
        patch = fj_parse("%s", text);
        merge(object, patch);
        if (fake_resource(id)->has_generation &&
            !fj_equal(fj_member(object, "spec"), fj_member(old, "spec")))
                fj_set_int(fj_object(object, "metadata"), "generation",
                           fj_int(old, 0, "metadata", "generation", NULL) + 1);
        fake_store_update(c->store, id, object);
}

bool fake_delete(FakeCluster *c, FakeResourceId id, const char *ns, const char *name, int64_t grace_sec) {
        FakeDeleteOptions o = { .has_grace = grace_sec >= 0, .grace_sec = grace_sec };
        FakeRequest r = { .verb = FAKE_DELETE, .resource = fake_resource(id) };
        _cleanup_reply_ FakeReply reply = { 0 };

        return fake_write_delete(c->api, &r, ns, name, &o, false, &reply);
}

bool fake_remove(FakeCluster *c, FakeResourceId id, const char *ns, const char *name) {
        return fake_store_delete(c->store, id, ns, name);
}

int fake_load(FakeCluster *c, const cJSON *list) {
        const cJSON *items = cJSON_IsArray(list) ? list : fj_get(list, "items", NULL), *o;
        int n = 0;

        cJSON_ArrayForEach (o, items) {
                const FakeResource *r =
                        fake_resource_of_kind(fj_string(o, "apiVersion", NULL), fj_string(o, "kind", NULL));

                if (!r || isempty(fj_string(o, "metadata", "name", NULL)))
                        return -EINVAL;
                fake_put(c, r->id, fj_copy(o));
                n++;
        }
        return n;
}

/* -- makers -------------------------------------------------------------------------------------------- */

cJSON *fake_make_node(FakeCluster *c, const char *name, const char *zone, const char *instance, const char *pool) {
        const char *in = zone ? zone : "us-east-1a";
        cJSON *node = fj_parse("{'metadata':{'name':'%s','labels':{'kubernetes.io/hostname':'%s',"
                               "'topology.kubernetes.io/zone':'%s'}},'spec':{},"
                               "'status':{'capacity':{'cpu':'4','memory':'16Gi','pods':'110'},"
                               "'allocatable':{'cpu':'4','memory':'16Gi','pods':'110'},"
                               "'nodeInfo':{'kubeletVersion':'v1.34.4','bootID':'%s-boot-1'}}}",
                               name, name, in, name);

        if (instance) {
                _cleanup_free_ char *id = MUST(strf("aws:///%s/%s", in, instance));

                fj_set_string(fj_object(node, "spec"), "providerID", id);
        }
        if (pool)
                fj_set_string(fj_object(fj_object(node, "metadata"), "labels"), "vesper.sh/pool", pool);
        fake_set_condition(c->store, fj_object(node, "status"), "Ready", "True", "KubeletReady",
                           "kubelet is posting ready status");
        return node;
}

void fake_add_node(FakeCluster *c, const char *name, const char *zone, const char *instance,
                   const char *pool) {
        fake_put(c, FAKE_NODES, fake_make_node(c, name, zone, instance, pool));
}

static void set_owner(FakeCluster *c, cJSON *pod, const char *ns, const FakePod *p) {
        static const struct {
                const char *kind;
                FakeResourceId id;
        } kinds[] = {
                { "ReplicaSet", FAKE_REPLICASETS },
                { "DaemonSet", FAKE_DAEMONSETS },
                { "StatefulSet", FAKE_STATEFULSETS },
        };
        const char *api_version = streq(p->owner_kind, "Node") ? "v1" : "apps/v1", *uid = NULL;
        _cleanup_free_ char *made = MUST(strf("%s-%s-uid", p->owner_kind, p->owner));

        for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
                if (streq(kinds[i].kind, p->owner_kind))
                        uid = fj_string(fake_get(c, kinds[i].id, ns, p->owner), "metadata", "uid", NULL);
        cJSON_AddItemToArray(
                fj_array(fj_object(pod, "metadata"), "ownerReferences"),
                fj_parse("{'apiVersion':'%s','kind':'%s','name':'%s','uid':'%s','controller':true}",
                         api_version, p->owner_kind, p->owner, uid ? uid : made));
}

static void set_annotations(cJSON *pod, const FakePod *p) {
        cJSON *meta = fj_object(pod, "metadata"), *annotations;
        char seconds[24];

        if (p->annotations)
                fj_set(meta, "annotations", fj_parse("%s", p->annotations));
        annotations = fj_object(meta, "annotations");
        snprintf(seconds, sizeof(seconds), "%lld", (long long) p->stop_sec);
        if (p->stop_sec > 0)
                fj_set_string(annotations, "fake.vesper.sh/stop-seconds", seconds);
        if (p->stuck)
                fj_set_string(annotations, "fake.vesper.sh/stuck", "true");
        if (p->unready)
                fj_set_string(annotations, "fake.vesper.sh/unready", "true");
        if (!annotations->child)
                fj_remove(meta, "annotations");
}

void fake_add_pod(FakeCluster *c, const FakePod *p) {
        const char *ns = p->ns ? p->ns : "default";
        bool runs = p->node && !p->pending;
        char now[RFC3339_MAX];
        cJSON *pod = fj_parse(
                "{'metadata':{'name':'%s','namespace':'%s'},"
                "'spec':{'containers':[{'name':'main','image':'app'}],'restartPolicy':'Always',"
                "'terminationGracePeriodSeconds':%lld,'schedulerName':'default-scheduler','priority':0},"
                "'status':{'phase':'%s','qosClass':'BestEffort'}}",
                p->name, ns, (long long) (p->grace_sec > 0 ? p->grace_sec : 30),
                runs ? "Running" : "Pending");

        if (p->node)
                fj_set_string(fj_object(pod, "spec"), "nodeName", p->node);
        if (p->app)
                fj_set_string(fj_object(fj_object(pod, "metadata"), "labels"), "app", p->app);
        if (p->owner_kind)
                set_owner(c, pod, ns, p);
        if (streq_ptr(p->owner_kind, "DaemonSet"))
                cJSON_AddItemToArray(fj_array(fj_object(pod, "spec"), "tolerations"),
                                     fj_parse("{'operator':'Exists'}"));
        set_annotations(pod, p);
        if (runs) {
                fj_set_string(fj_object(pod, "status"), "startTime", fake_store_timestamp(c->store, now));
                fake_set_condition(c->store, fj_object(pod, "status"), "Ready",
                                   p->unready ? "False" : "True", NULL, NULL);
        }
        fake_put(c, FAKE_PODS, pod);
}

void fake_add_replicaset(FakeCluster *c, const char *ns, const char *name, const char *app, int replicas) {
        fake_put(c, FAKE_REPLICASETS,
                 fj_parse("{'metadata':{'name':'%s','namespace':'%s'},'spec':{'replicas':%d,"
                          "'selector':{'matchLabels':{'app':'%s'}},'template':{'metadata':{'labels':{'app':'"
                          "%s'}},"
                          "'spec':{'containers':[{'name':'main','image':'app'}]}}},'status':{'replicas':0}}",
                          name, ns ? ns : "default", replicas, app, app));
}

void fake_add_pdb(FakeCluster *c, const char *ns, const char *name, const char *app, bool min,
                  const char *value) {
        bool percent = strchr(value, '%');

        fake_put(c, FAKE_PDBS,
                 fj_parse("{'metadata':{'name':'%s','namespace':'%s'},'spec':{'%s':%s%s%s,"
                          "'selector':{'matchLabels':{'app':'%s'}}},'status':{'currentHealthy':0,'"
                          "desiredHealthy':0,"
                          "'disruptionsAllowed':0,'expectedPods':0}}",
                          name, ns ? ns : "default", min ? "minAvailable" : "maxUnavailable",
                          percent ? "'" : "", value, percent ? "'" : "", app));
}

void fake_add_nodepool(FakeCluster *c, const char *name, const char *termination_grace,
                       const char *provider) {
        cJSON *pool = fj_parse(
                "{'metadata':{'name':'%s'},'spec':{'selector':{'matchLabels':{'vesper.sh/pool':'%s'}},"
                "'template':{},'provider':{'name':'%s'}}}",
                name, name, provider ? provider : "ec2");

        if (termination_grace)
                fj_set_string(fj_object(fj_object(pool, "spec"), "template"), "terminationGracePeriod",
                              termination_grace);
        fake_put(c, FAKE_NODEPOOLS, pool);
}
