/* SPDX-License-Identifier: Apache-2.0 */
#include "notice-sources.h"

#include <stdio.h>

#include "file-util.h"
#include "notice-azure.h"
#include "notice-ec2.h"
#include "notice-exec.h"
#include "notice-file.h"
#include "notice-gce.h"
#include "string-util.h"

static_assert(AGENT_INSTANCE_ID_MAX == EC2_INSTANCE_ID_MAX, "an id of EC2 has room");

#define FACT_BYTES_MAX 256u
#define AZURE_ASSET_TAG "7783-7084-3265-9085-8269-3286-77"

static const char *const name_table[_METADATA_SOURCE_MAX] = {
        [METADATA_SOURCE_EC2] = "EC2",
        [METADATA_SOURCE_GCE] = "Compute Engine",
        [METADATA_SOURCE_AZURE] = "Azure",
        [METADATA_SOURCE_NONE] = "no cloud",
        [METADATA_SOURCE_AUTO] = "a cloud to be found",
};

const char *metadata_source_name(MetadataSource s) {
        assert(s >= 0 && s < _METADATA_SOURCE_MAX);
        return name_table[s];
}

/* -- which cloud -------------------------------------------------------------------------------- */

MetadataSource metadata_source_of_firmware(const FirmwareFacts *f) {
        if (streq_ptr(f->sys_vendor, "Amazon EC2") || (f->bios_version && endswith(f->bios_version, ".amazon")) ||
            (f->hypervisor_uuid && startswith(f->hypervisor_uuid, "ec2")))
                return METADATA_SOURCE_EC2;
        if (streq_ptr(f->product_name, "Google Compute Engine"))
                return METADATA_SOURCE_GCE;
        if (streq_ptr(f->chassis_asset_tag, AZURE_ASSET_TAG))
                return METADATA_SOURCE_AZURE;
        return METADATA_SOURCE_NONE;
}

const char *metadata_instance_of_firmware(const FirmwareFacts *f) {
        const char *tag = strempty(f->board_asset_tag);

        return streq_ptr(f->sys_vendor, "Amazon EC2") && ec2_instance_id_is_valid(tag, strlen(tag)) ? tag : NULL;
}

MetadataSource metadata_source_of_provider_id(const char *provider_id) {
        static const struct {
                const char *scheme;
                MetadataSource source;
        } schemes[] = {
                { "aws://", METADATA_SOURCE_EC2 },
                { "gce://", METADATA_SOURCE_GCE },
                { "azure://", METADATA_SOURCE_AZURE },
        };

        for (size_t i = 0; provider_id && i < ELEMENTSOF(schemes); i++)
                if (startswith(provider_id, schemes[i].scheme))
                        return schemes[i].source;
        return METADATA_SOURCE_NONE;
}

MetadataSource metadata_source_known(const AgentConfig *c) {
        return c->metadata_source == METADATA_SOURCE_AUTO ? c->detected_cloud : (MetadataSource) c->metadata_source;
}

static char *read_fact(const char *root, const char *path) {
        _cleanup_free_ char *whole = strf("%s%s", root, path);
        char *text = NULL;
        size_t size;

        if (!whole || read_file(whole, FACT_BYTES_MAX, &text, &size) < 0)
                return NULL;
        strstrip(text);
        return text;
}

void metadata_source_detect(const char *root, AgentConfig *c) {
        _cleanup_free_ char *vendor = read_fact(root, "/sys/class/dmi/id/sys_vendor");
        _cleanup_free_ char *product = read_fact(root, "/sys/class/dmi/id/product_name");
        _cleanup_free_ char *tag = read_fact(root, "/sys/class/dmi/id/chassis_asset_tag");
        _cleanup_free_ char *board = read_fact(root, "/sys/class/dmi/id/board_asset_tag");
        _cleanup_free_ char *bios = read_fact(root, "/sys/class/dmi/id/bios_version");
        _cleanup_free_ char *uuid = read_fact(root, "/sys/hypervisor/uuid");

        const FirmwareFacts facts = { .sys_vendor = vendor,
                                      .product_name = product,
                                      .chassis_asset_tag = tag,
                                      .board_asset_tag = board,
                                      .bios_version = bios,
                                      .hypervisor_uuid = uuid };

        c->detected_cloud = metadata_source_of_firmware(&facts);
        (void) snprintf(c->detected_instance, sizeof(c->detected_instance), "%s", strempty(metadata_instance_of_firmware(&facts)));
}

/* -- the sources -------------------------------------------------------------------------------- */

static const char *other_endpoint(const char *endpoint) {
        return streq(endpoint, AGENT_METADATA_ENDPOINT) ? AGENT_METADATA_ENDPOINT_IPV6 : NULL;
}

int notice_sources_imds(Env *env, const AgentConfig *config, ImdsClient **ret) {
        const char *endpoint = config->metadata_endpoint ? config->metadata_endpoint : AGENT_METADATA_ENDPOINT;
        _cleanup_(imds_client_freep) ImdsClient *c = NULL;
        int r;

        r = imds_client_new(env, endpoint, &c);
        if (r >= 0 && other_endpoint(endpoint))
                r = imds_client_set_other_endpoint(c, other_endpoint(endpoint));
        if (r < 0)
                return r;
        if (config->allow_imdsv1)
                imds_client_allow_v1(c);
        *ret = TAKE_PTR(c);
        return 0;
}

static int make_cloud(const NoticeSourcesOptions *o, NoticeSource **ret) {
        const char *endpoint = o->config->metadata_endpoint ? o->config->metadata_endpoint : AGENT_METADATA_ENDPOINT;
        const NoticeEc2Options ec2 = { .endpoint = endpoint,
                                       .other_endpoint = other_endpoint(endpoint),
                                       .allow_v1 = o->config->allow_imdsv1,
                                       .firmware_instance = o->config->detected_instance,
                                       .poll_usec = o->config->poll_usec };
        const NoticeAzureOptions azure = { .endpoint = endpoint, .poll_usec = o->config->poll_usec };
        const NoticeGceOptions gce = { .endpoint = endpoint, .poll_usec = o->config->poll_usec };

        switch (o->cloud) {
        case METADATA_SOURCE_EC2:
                return notice_ec2_new(o->env, &ec2, o->on_look, o->userdata, ret);
        case METADATA_SOURCE_GCE:
                return notice_gce_new(o->env, &gce, o->on_look, o->userdata, ret);
        case METADATA_SOURCE_AZURE:
                return notice_azure_new(o->env, &azure, o->on_look, o->userdata, ret);
        case METADATA_SOURCE_NONE:
                return 0;
        case METADATA_SOURCE_AUTO:
        case _METADATA_SOURCE_MAX:
                break;
        }
        assert(false && "a cloud that was not found yet");
        return -EINVAL;
}

static int make_file(const NoticeSourcesOptions *o, NoticeSource **ret) {
        const NoticeFileOptions file = { .path = o->config->file_path, .poll_usec = o->config->file_poll_usec };

        return file.path ? notice_file_new(o->env, &file, o->on_look, o->userdata, ret) : 0;
}

static int make_exec(const NoticeSourcesOptions *o, NoticeSource **ret) {
        const NoticeExecOptions exec = { .command = o->config->command,
                                         .node = o->config->node_name,
                                         .poll_usec = o->config->command_poll_usec };

        return exec.command && exec.command[0] ? notice_exec_new(o->env, &exec, o->on_look, o->userdata, ret) : 0;
}

int notice_sources_make(const NoticeSourcesOptions *o, NoticeSource **sources, size_t *n) {
        static int (*const makers[NOTICE_SOURCES_MAX])(const NoticeSourcesOptions *o, NoticeSource **ret) = { make_cloud, make_file,
                                                                                                            make_exec };
        size_t n_makers = o->others ? ELEMENTSOF(makers) : 1, at = 0;

        for (size_t i = 0; i < n_makers; i++) {
                NoticeSource *made = NULL;
                int r = makers[i](o, &made);

                if (r < 0)
                        return r;
                if (made) {
                        sources[at++] = made;
                        (*n)++;
                }
        }
        return 0;
}
