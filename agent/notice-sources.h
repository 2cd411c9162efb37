/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * notice-sources.c: which sources of notices this machine has: the metadata service of its cloud, and what the
 * configuration names besides. The cloud is told by the machine's firmware (DMI), else by the providerID of its Node.
 */

#include "agent-config.h"
#include "imds-client.h"
#include "notice-source.h"

/* For people: "EC2". */
const char *metadata_source_name(MetadataSource s);

/* What the firmware says of itself, as /sys/class/dmi/id and /sys/hypervisor/uuid have it; each may be NULL. */
typedef struct FirmwareFacts {
        char *sys_vendor, *product_name, *chassis_asset_tag, *board_asset_tag, *bios_version, *hypervisor_uuid;
} FirmwareFacts;

/* Pure. METADATA_SOURCE_NONE: no cloud that is known.
 *      EC2    Nitro: sys_vendor "Amazon EC2"; Xen: a BIOS version that ends in ".amazon", a hypervisor UUID that begins with ec2
 *             (docs.aws.amazon.com: identify_ec2_instances)
 *      GCE    product_name "Google Compute Engine" (docs.cloud.google.com: detect-compute-engine)
 *      Azure  chassis_asset_tag 7783-7084-3265-9085-8269-3286-77 (learn.microsoft.com: cloud-init, its Azure data source) */
MetadataSource metadata_source_of_firmware(const FirmwareFacts *f);
/* Pure. The id of this EC2 instance, which Nitro's board_asset_tag is (the same page); NULL: it does not say. Borrowed from the facts. */
const char *metadata_instance_of_firmware(const FirmwareFacts *f);
/* "aws:///eu-west-1a/i-0123", "gce://...", "azure://..."; NULL and others: NONE. */
MetadataSource metadata_source_of_provider_id(const char *provider_id);

/* Whose metadata service is read before anything is known of the Node: what the configuration says, or with auto what
 * the firmware does. */
MetadataSource metadata_source_known(const AgentConfig *c);

/* Reads the firmware's facts below `root` ("" is this machine) and keeps what they say: detected_cloud and detected_instance. */
void metadata_source_detect(const char *root, AgentConfig *c);

/* For other questions to EC2's metadata, as its source asks. 0 or -ENOMEM. */
int notice_sources_imds(Env *env, const AgentConfig *config, ImdsClient **ret);

#define NOTICE_SOURCES_MAX 3u

typedef struct NoticeSourcesOptions {
        Env *env;
        const AgentConfig *config;
        MetadataSource cloud; /* NONE: none of a cloud */
        bool others;          /* with those that the configuration names besides */
        notice_look_t on_look;
        void *userdata;
} NoticeSourcesOptions;

/* At most NOTICE_SOURCES_MAX into sources; *n counts on. -ENOMEM and what they say; what was made stands in sources. */
int notice_sources_make(const NoticeSourcesOptions *o, NoticeSource **sources, size_t *n);
