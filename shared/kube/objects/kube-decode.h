/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How the decoders of this room read a field: a value that is absent leaves the default, one that cannot be
 * understood leaves the default too and becomes the object's `invalid` sentence (the first one stays), and
 * lack of memory sticks. So a decoder is a list of fields, and everything that can be read of a bad object
 * is read. Private to kube/.
 */

#include "kube-kinds.h"

/*
 * Bounds of what vesper keeps of one object. etcd stores objects of 1.5 MB, and the API server does not
 * bound most lists: without bounds, one object could take many times its own size in each vesper process.
 * Each bound is several times what the largest honest object has. Beyond a bound the list or map is dropped
 * and KubeObject.invalid says so. Exceptions: the first DECODE_FINALIZERS_MAX finalizers stay, and labels
 * that a kubelet cannot set stay.
 */
#define DECODE_LIST_MAX 256u /* elements of a list: taints, conditions, addresses, owners, mounted claims */
#define DECODE_FINALIZERS_MAX 16u /* of kinds whose finalizers vesper does not write, to show them */
#define DECODE_OWNER_BYTES_MAX 2048u /* of all texts of one owner: the API server does not bound them */
#define DECODE_KEY_VALUES_MAX 512u /* labels, wanted annotations, allocatable resources */
#define DECODE_COPY_BYTES_MAX (64u << 10) /* JSON that is kept as text: see decode_copy_text() */

typedef struct Decoder {
        KubeObject *object;
        InternPool *pool;
        bool failed; /* out of memory */
        bool is_cut; /* a copy was stopped at DECODE_COPY_BYTES_MAX */
} Decoder;

/* -EINVAL if the object became invalid, -ENOMEM. */
int decoder_finish(const Decoder *d);
void decoder_invalid(Decoder *d, const char *fmt, ...) _printf_(2, 3);

/* path: "spec.nodeName", for the sentence. The targets begin with their defaults. */
void decode_string(Decoder *d, const Json *v, const char *path, char **ret);
void decode_interned(Decoder *d, const Json *v, const char *path, const char **ret);
void decode_int64(Decoder *d, const Json *v, const char *path, int64_t *ret);
void decode_bool(Decoder *d, const Json *v, const char *path, bool *ret);
void decode_time(Decoder *d, const Json *v, const char *path, usec_t *ret);
/* ^([0-9]+(s|m|h))+$, the pattern of NodeClaim's CRD; "0s" is 0. With allow_never "Never" is USEC_INFINITY. */
void decode_duration(Decoder *d, const Json *v, const char *path, bool allow_never, usec_t *ret);
void decode_selector(Decoder *d, const Json *v, const char *path, Selector **ret);
/* spec.repair of a NodePool, or what it is when unset. */
void decode_repair(Decoder *d, const Json *v, RepairRule **ret, size_t *ret_n);
void repair_rules_free(RepairRule *rules, size_t n);
/* spec.disruption, .template, .offerings and .limits of a NodePool. */
void decode_pool_disruption(Decoder *d, const Json *v, PoolDisruption *ret);
void pool_disruption_done(PoolDisruption *p);
void decode_pool_template(Decoder *d, const Json *v, PoolTemplate *ret);
void pool_template_done(PoolTemplate *t, InternPool *pool);
void decode_pool_offerings(Decoder *d, const Json *v, PoolOffering **ret, size_t *ret_n);
void pool_offerings_free(PoolOffering *o, size_t n, InternPool *pool);
void decode_pool_limits(Decoder *d, const Json *v, KeyValues *ret);
/* A number of nodes, or a percentage as text. */
void decode_amount(Decoder *d, const Json *v, const char *path, NodeAmount *ret);
void decode_conditions(Decoder *d, const Json *v, Condition **ret, size_t *ret_n);
/* The interruption that annotation key holds, or NULL. Returns false if the annotation is there and unreadable. */
bool decode_interruption(Decoder *d, const char *key, Interruption **ret);
/* Empty where ANNOTATION_ANNOUNCED is absent or unreadable. *ret_let_go_usec is unchanged if ANNOTATION_LET_GO is absent, and 0 if it is unreadable. */
void decode_announced(Decoder *d, AnnouncedList *ret, usec_t *ret_let_go_usec);
/* The elements of an array that may be absent; NULL (and invalid) for anything else. */
const Json *decode_array(Decoder *d, const Json *v, const char *path);
/* Returns an array of zeroed elements, one for each of the list. NULL: the list is empty, or longer than max
 * (then the object is invalid), or there is no memory. Free it. */
void *decode_room(Decoder *d, const Json *list, const char *path, size_t max, size_t element_bytes);
/* Fills *ret with a list of names, NULL-terminated and in one allocation: free() frees it. However long the
 * list is, this takes at most four times its bytes. member: the member of each element that holds the name;
 * NULL: the element is the name. An element without a name, or with an empty one, makes the object invalid
 * and is left out. Only the first max names are kept. *ret stays NULL if no name is left. */
void decode_names(Decoder *d, const Json *v, const char *path, const char *member, size_t max, char ***ret);
/* Reads a map of texts. all: every key; else those that `wanted` picks (NULL: none). If these are more than
 * DECODE_KEY_VALUES_MAX, none is read, kv->unread is set and the object is invalid. */
void decode_key_values(Decoder *d, const Json *v, const char *path, bool all, bool (*wanted)(const char *key),
                       KeyValues *kv);

/* -- kube-copy.c: parts of an object that are kept as JSON ------------------------------------------------
 * Copies the fields that the shape names, by ascending field number, with the keys of maps sorted: the same
 * part gives the same text whether it came as JSON or as protobuf. A field is left out if it is absent,
 * null, an empty text, list or map, 0 or false. An empty object is kept, for it means something (a selector
 * of everything). A value with a wrong type makes the object invalid, and is left out. Copying stops, and
 * the object is invalid, once w has more than DECODE_COPY_BYTES_MAX bytes: the text in w is then incomplete,
 * and the caller throws it away (json_writer_size()). The copy becomes the member `key`. Returns false, and
 * writes nothing, if the part is absent or empty. */
bool decode_copy_list(Decoder *d, const Json *v, const char *path, const ProtobufShape *shape, JsonWriter *w,
                      const char *key);
/* A map of texts; quantities may also be integers. */
bool decode_copy_map(Decoder *d, const Json *v, const char *path, bool of_quantities, JsonWriter *w,
                     const char *key);
/* Would decode_copy_map() write anything of it? */
bool decode_copy_map_has(const Json *v, bool of_quantities);
/* Sets *ret to the text of an object or list by itself. NULL: it is absent, an empty list, or too large
 * (then the object is invalid). */
void decode_copy_text(Decoder *d, const Json *v, const char *path, const ProtobufShape *shape, bool list,
                      char **ret);

/* -- kinds that others begin with ------------------------------------------------------------------------- */

int kube_pod_decode(KubeObject *o, const Json *json, InternPool *pool);
void kube_pod_done(KubeObject *o, InternPool *pool);
bool kube_pod_annotation_wanted(const char *key);
/* Compares what a scheduled pod has beyond a KubePod, for kube_pod_says_same(). Returns true for pods of other kinds. */
bool scheduled_pod_says_same(const KubePod *a, const KubePod *b);
int kube_node_decode(KubeObject *o, const Json *json, InternPool *pool);
void kube_node_done(KubeObject *o, InternPool *pool);
bool kube_node_annotation_wanted(const char *key);
int kube_pvc_decode(KubeObject *o, const Json *json, InternPool *pool);
void kube_pvc_done(KubeObject *o, InternPool *pool);
