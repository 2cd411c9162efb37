/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl-rig.h"
#include "cmocka-test.h"
#include "strv.h"

static void on_request(const HttpRequest *request, const char *peer, HttpFault *ret_fault, void *userdata) {
        (void) peer;
        if (strstr(request->url, "/eviction"))
                ret_fault->reply_delay_usec = ((CtlRig *) userdata)->eviction_reply_usec;
}

FakeApi *ctl_rig_api(CtlRig *b) {
        return fake_cluster_api(b->w.cluster);
}

static void process_begin(CtlRig *b) {
        _cleanup_(kubeconfig_freep) KubeConfig *config = NULL;
        _cleanup_free_ char *message = NULL;
        HttpInprocHooks hooks = { .on_request = on_request, .userdata = b };

        assert_return_code(loop_new_virtual(b->w.time, &b->loop), 0);
        assert_return_code(random_new(5, &b->random), 0);
        assert_return_code(http_inproc_new(b->loop, b->identity, &hooks, &b->transport), 0);
        assert_return_code(http_inproc_route(b->transport, FAKE_ORIGIN, fake_cluster_handle, b->w.cluster),
                           0);
        b->env = (Env){ .loop = b->loop, .random = b->random, .transport = b->transport, .version = "0" };
        assert_return_code(kubeconfig_plain(FAKE_ORIGIN, &config), 0);
        assert_return_code(kube_auth_new(b->loop, NULL, NULL, config, NULL, NULL, &b->auth, &message), 0);
        b->ctl.env = &b->env;
        assert_return_code(kube_client_new(&b->env, b->auth, FAKE_ORIGIN, "vesperctl", &b->ctl.client), 0);
}

static void process_end(CtlRig *b) {
        kube_client_free(b->ctl.client);
        kube_auth_free(b->auth);
        http_transport_free(b->transport);
        random_free(b->random);
        loop_free(b->loop);
}

void ctl_rig_init(CtlRig *b, const char *identity) {
        *b = (CtlRig){ .identity = identity ? identity : FAKE_ADMIN };
        fake_world_init(&b->w, NULL);
        process_begin(b);
        fake_add_node(b->w.cluster, "n1", NULL, "i-1", NULL);
        fake_add_node(b->w.cluster, "n2", NULL, "i-2", NULL);
        fake_add_node(b->w.cluster, "spare", NULL, "i-3", NULL);
}

void ctl_rig_end_verb(CtlRig *b) {
        if (b->verb)
                b->ctl.verb->free(b->verb);
        b->verb = NULL;
        for (size_t i = 0; i < 2; i++)
                b->said[i] = mfree(b->said[i]);
}

void ctl_rig_done(CtlRig *b) {
        ctl_rig_end_verb(b);
        strv_free(b->args);
        process_end(b);
        fake_world_done(&b->w);
}

static void listen(CtlRig *b, bool on) {
        FILE **streams[2] = { &stdout, &stderr };

        for (size_t i = 0; i < 2; i++)
                if (on) {
                        _cleanup_free_ char *before = b->said[i];

                        b->said[i] = NULL;
                        b->terminal[i] = *streams[i];
                        *streams[i] = open_memstream(&b->said[i], &b->size[i]);
                        fputs(strempty(before), *streams[i]);
                } else {
                        fclose(*streams[i]);
                        *streams[i] = b->terminal[i];
                }
}

void ctl_rig_run(CtlRig *b, usec_t usec) {
        listen(b, true);
        fake_world_run(&b->w, usec);
        listen(b, false);
}

int ctl_rig_start_ctl(CtlRig *b) {
        int r;

        /* Each verb gets a loop of its own, because the loop ends with the verb. */
        if (b->is_used) {
                process_end(b);
                process_begin(b);
        }
        b->is_used = true;
        b->ctl.status = -1;
        listen(b, true);
        r = b->ctl.verb->offline ? b->ctl.verb->offline(&b->ctl) : 0;
        if (r == 0)
                r = b->ctl.verb->start(&b->ctl, &b->verb);
        listen(b, false);
        return r;
}

int ctl_rig_start(CtlRig *b, const CtlVerb *v, CtlOutput output, const CtlOptions *o, const char *nodes) {
        ctl_rig_end_verb(b);
        b->ctl.verb = v;
        b->ctl.options = o;
        b->ctl.output = output;
        b->args = strv_free(b->args);
        assert_return_code(strv_split(nodes, " ", &b->args), 0);
        b->ctl.args = b->args;
        b->ctl.n_args = strv_length(b->args);
        return ctl_rig_start_ctl(b);
}

void ctl_rig_assert_says(const CtlRig *b, size_t stream, const char *text) {
        if (strstr(strempty(b->said[stream]), text))
                return;
        print_error("'%s' is not in:\n%s%s\n", text, strempty(b->said[0]), strempty(b->said[1]));
        fail();
}
