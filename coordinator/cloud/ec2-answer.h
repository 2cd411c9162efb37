/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What EC2 says, and how a node names its instance. Pure: texts go in; what comes out is ours.
 */

#include "cloud.h"

/* -- providerID ----------------------------------------------------------------------------- */

#define EC2_NAME_MAX 64u

typedef struct Ec2ProviderId {
        char instance_id[EC2_NAME_MAX + 1]; /* "i-" and hex digits */
        char zone[EC2_NAME_MAX + 1];        /* "" if the providerID names none */
} Ec2ProviderId;

/* "aws:///ZONE/i-HEX", "aws:////i-HEX", "i-HEX". -EINVAL for all else, Fargate's "aws:///ZONE/fargate-..."
 * included. */
int ec2_provider_id_parse(const char *provider_id, Ec2ProviderId *ret);

/* -- replies -------------------------------------------------------------------------------- */

/* The tag by which an account's owner says which Node an instance is (ec2-identity.h). */
#define EC2_NODE_TAG "vesper.sh/node"

typedef struct Ec2Instance {
        char *instance_id;
        char *zone;             /* NULL if not told */
        char *private_dns_name; /* NULL or "": it has none, as one that has ended */
        char *node_tag;         /* of EC2_NODE_TAG; NULL: it has no such tag */
        InstanceState state;
} Ec2Instance;

typedef struct Ec2Instances {
        Ec2Instance *items;
        size_t n_items;
        size_t allocated;
        char *next_token; /* of the last reply; NULL: it was the last page */
} Ec2Instances;

/* Both append to *list (zeroed, or with the pages before). -EBADMSG: not wholly the document that it should
 * be: then nothing that is missing in it may be taken for absent. -ENOMEM. */
int ec2_instances_parse_describe(const char *data, size_t size, Ec2Instances *list);
int ec2_instances_parse_terminate(const char *data, size_t size, Ec2Instances *list);
/* The answer of RebootInstances, whose <return> says nothing but true, if it is there (EC2's own model has no such member): 0;
 * -EBADMSG, -ENOMEM. */
int ec2_reboot_parse(const char *data, size_t size);
void ec2_instances_done(Ec2Instances *list);
/* Borrowed; NULL if it is not there. Listed twice, the entry that is most alive counts. */
const Ec2Instance *ec2_instances_find(const Ec2Instances *list, const char *instance_id);

/* -- errors --------------------------------------------------------------------------------- */

typedef enum Ec2Fault {
        EC2_FAULT_NOT_FOUND, /* no such instance, for who is asking where */
        EC2_FAULT_INVALID,   /* the request can never work */
        EC2_FAULT_STATE,     /* not in this state of the instance: look again, then decide */
        EC2_FAULT_PROTECTED, /* termination protection */
        EC2_FAULT_DENIED,    /* credentials or permissions */
        EC2_FAULT_THROTTLED,
        EC2_FAULT_PASSING, /* and everything not known: asked again with backoff, never acted on */
} Ec2Fault;

/* code: NULL if the error document could not be read. */
Ec2Fault ec2_fault_from(const char *code, unsigned http_status);
