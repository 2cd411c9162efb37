/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "admission-review.h"
#include "fuzz-objects.h"
#include "string-util.h"

/*
 * Any body that may reach the webhook: refused with a sentence and nothing kept, or a request that can be
 * answered: a deletion with the name and uid of its object, or something that is no concern of ours. Its
 * answer names the same uid.
 */

static void check_answer(char *body, const AdmissionReview *r, bool allowed) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const Json *response;
        bool said;
        int k;

        assert(body);
        k = json_parse(body, strlen(body), 1u << 20, &doc, NULL);
        assert(k == 0);
        response = json_get(json_root(doc), "response");
        assert(streq(json_string_or_null(json_get(response, "uid")), r->uid));
        k = json_bool(json_get(response, "allowed"), &said);
        assert(k == 0 && said == allowed);
        assert(!json_path(response, "status", "details", NULL));
        free(body);
}

static void check_request(const AdmissionReview *r) {
        const char *const warnings[] = { r->username };

        assert(r->uid && r->uid[0] && r->operation && r->group && r->resource && r->subresource &&
               r->username);
        assert((r->subject == ADMISSION_OTHER) == (r->object == NULL));
        if (r->object) {
                assert(r->object->meta.name[0] && r->object->meta.uid[0]);
                assert(streq(r->operation, "DELETE") && r->subresource[0] == 0);
                assert(streq(r->resource, r->object->kind->plural) &&
                       streq(r->group, r->object->kind->group));
        }
        check_answer(admission_allow(r->uid, warnings, ELEMENTSOF(warnings)), r, true);
        check_answer(admission_refuse(r->uid, r->username), r, false);
}

static void check(const char *body, size_t size) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_free_ char *message = NULL;
        AdmissionReview review;
        int r;

        r = intern_pool_new(&pool);
        assert(r == 0);
        r = admission_review_parse(body, size, pool, &review, &message);
        assert(r == 0 || r == -EBADMSG || r == -E2BIG);
        assert((r == 0) == (message == NULL));
        if (r == 0)
                check_request(&review);
        else
                assert(!review.uid && !review.object && strlen(message) < 512);
        admission_review_done(&review);
        assert(intern_pool_size(pool) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Draw d = { data, size };
        _cleanup_free_ char *template = NULL, *body = NULL;
        bool is_claim;

        if (draw_is_text(data, size)) {
                check((const char *) data, size);
                return 0;
        }
        is_claim = draw_bool(&d);
        template = strf(
                "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{\"uid\":\"u\","
                "\"resource\":{\"group\":\"%s\",\"version\":\"v1\",\"resource\":\"%s\"},\"name\":\"n1\","
                "\"operation\":\"DELETE\",\"userInfo\":{\"username\":\"alice\",\"groups\":[\"dev\",\"ops\"]},"
                "\"object\":null,\"oldObject\":%s,\"dryRun\":false,\"options\":{\"kind\":\"DeleteOptions\"}}}",
                is_claim ? "vesper.sh" : "", is_claim ? "nodeclaims" : "nodes",
                is_claim ? fuzz_node_claim : fuzz_node);
        assert(template);
        body = draw_bent_json(&d, template);
        check(body, strlen(body));
        return 0;
}
