/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud-ec2.h"
#include "cloud-exec.h"
#include "cloud.h"
#include "string-util.h"

static const char *const state_table[_INSTANCE_STATE_MAX] = {
        [INSTANCE_UNKNOWN] = "unknown",
        [INSTANCE_PRESENT] = "present",
        [INSTANCE_OFF] = "off",
        [INSTANCE_TERMINATING] = "terminating",
        [INSTANCE_GONE] = "gone",
        [INSTANCE_NOT_FOUND] = "not-found",
};

const char *const cloud_outcome_names[_CLOUD_OUTCOME_MAX + 1] = {
        [CLOUD_OK] = "ok",         [CLOUD_RETRY] = "retry",     [CLOUD_PROTECTED] = "protected",
        [CLOUD_DENIED] = "denied", [CLOUD_INVALID] = "invalid", [CLOUD_NO_CAPACITY] = "no-capacity",
        [CLOUD_AT_MINIMUM] = "at-minimum",
};

const char *const cloud_answer_names[_CLOUD_ANSWER_MAX + 1] = {
        [CLOUD_ANSWER_ACCEPTED] = "accepted",      [CLOUD_ANSWER_UNKNOWN] = "unknown",      [CLOUD_ANSWER_LATER] = "later",
        [CLOUD_ANSWER_NO_CAPACITY] = "noCapacity", [CLOUD_ANSWER_AT_MINIMUM] = "atMinimum", [CLOUD_ANSWER_REFUSED] = "refused",
};

static const CloudAnswer answers[_CLOUD_OUTCOME_MAX] = {
        [CLOUD_OK] = CLOUD_ANSWER_ACCEPTED,
        [CLOUD_RETRY] = CLOUD_ANSWER_LATER,
        [CLOUD_PROTECTED] = CLOUD_ANSWER_REFUSED,
        [CLOUD_NO_CAPACITY] = CLOUD_ANSWER_NO_CAPACITY,
        [CLOUD_AT_MINIMUM] = CLOUD_ANSWER_AT_MINIMUM,
        [CLOUD_DENIED] = CLOUD_ANSWER_REFUSED,
        [CLOUD_INVALID] = CLOUD_ANSWER_REFUSED,
};

CloudAnswer cloud_result_answer(const CloudResult *r) {
        return r->undecided && r->outcome != CLOUD_OK ? CLOUD_ANSWER_UNKNOWN : answers[r->outcome];
}

const char *const cloud_operation_names[_CLOUD_OPERATION_MAX + 1] = {
        [CLOUD_DESCRIBE] = "describe",
        [CLOUD_TURN] = "turn",
        [CLOUD_TERMINATE] = "terminate",
        [CLOUD_REBOOT] = "reboot",
        [CLOUD_LIST] = "list",
        [CLOUD_LAUNCH] = "launch",
        [CLOUD_FIND] = "find",
        [CLOUD_LEAVE] = "leave",
        [CLOUD_END] = "end",
        [CLOUD_GROUP] = "group",
};

enum { PROVIDER_EC2, PROVIDER_EXEC, _PROVIDER_MAX };

const char *const cloud_provider_names[] = {
        [PROVIDER_EC2] = "ec2",
        [PROVIDER_EXEC] = "exec",
        [_PROVIDER_MAX] = NULL,
};

static int (*const provider_table[_PROVIDER_MAX])(Env *env, const CloudConfig *config, CloudProvider **ret,
                                                  const char **reterr_message) = {
        [PROVIDER_EC2] = cloud_ec2_new,
        [PROVIDER_EXEC] = cloud_exec_new,
};

const char *instance_state_to_string(InstanceState s) {
        return s >= 0 && s < _INSTANCE_STATE_MAX ? state_table[s] : NULL;
}

InstanceState instance_state_from_string(const char *s) {
        if (s)
                for (size_t i = 0; i < ELEMENTSOF(state_table); i++)
                        if (streq(s, state_table[i]))
                                return (InstanceState) i;
        return _INSTANCE_STATE_INVALID;
}

const char *cloud_outcome_to_string(CloudOutcome o) {
        return (int) o >= 0 && o < _CLOUD_OUTCOME_MAX ? cloud_outcome_names[o] : NULL;
}

int cloud_provider_new(Env *env, const CloudConfig *config, CloudProvider **ret,
                       const char **reterr_message) {
        assert(env && config && ret && reterr_message);
        for (int i = 0; i < _PROVIDER_MAX; i++)
                if (streq_ptr(config->name, cloud_provider_names[i]))
                        return provider_table[i](env, config, ret, reterr_message);
        *reterr_message = "no such provider";
        return -EINVAL;
}

CloudProvider *cloud_provider_free(CloudProvider *p) {
        if (p)
                p->ops->free(p);
        return NULL;
}

void cloud_provider_set_witness(CloudProvider *p, cloud_witness_t witness, void *userdata) {
        p->witness = witness;
        p->witness_userdata = userdata;
}

const char *cloud_provider_next_witness(CloudProvider *p) {
        const char *id;

        if (!p->witness)
                return NULL;
        id = p->witness(p, p->n_witnesses, p->witness_userdata);
        if (!id) { /* all were named: from the beginning */
                p->n_witnesses = 0;
                id = p->witness(p, 0, p->witness_userdata);
        }
        p->n_witnesses += id != NULL;
        return id;
}

CloudMachine *cloud_machine_copy(const CloudMachine *m) {
        _cleanup_(cloud_machine_freep) CloudMachine *to = new0(CloudMachine, 1);
        CloudAddress *addresses;

        assert(m && m->provider_id);
        if (!to)
                return NULL;
        to->addresses = addresses = m->n_addresses > 0 ? new0(CloudAddress, m->n_addresses) : NULL;
        if (m->n_addresses > 0 && !addresses)
                return NULL;
        to->n_addresses = m->n_addresses;
        if (free_and_strdup((char **) &to->provider_id, m->provider_id) < 0 ||
            free_and_strdup((char **) &to->node, m->node) < 0 ||
            free_and_strdup((char **) &to->system_uuid, m->system_uuid) < 0 ||
            free_and_strdup((char **) &to->machine_id, m->machine_id) < 0)
                return NULL;
        for (size_t i = 0; i < m->n_addresses; i++)
                if (free_and_strdup((char **) &addresses[i].type, m->addresses[i].type) < 0 ||
                    free_and_strdup((char **) &addresses[i].address, m->addresses[i].address) < 0)
                        return NULL;
        return TAKE_PTR(to);
}

CloudMachine *cloud_machine_free(CloudMachine *m) {
        if (!m)
                return NULL;
        for (size_t i = 0; i < m->n_addresses; i++) {
                free((char *) m->addresses[i].type);
                free((char *) m->addresses[i].address);
        }
        free((CloudAddress *) m->addresses);
        free((char *) m->provider_id);
        free((char *) m->node);
        free((char *) m->system_uuid);
        free((char *) m->machine_id);
        free(m);
        return NULL;
}

size_t cloud_provider_index(const CloudProvider *p) {
        for (size_t i = 0; i < _PROVIDER_MAX; i++)
                if (streq(p->ops->name, cloud_provider_names[i]))
                        return i;
        assert(false && "a provider without a name");
        return 0;
}
