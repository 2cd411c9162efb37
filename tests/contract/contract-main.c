/* SPDX-License-Identifier: Apache-2.0 */
/* contract --fake --manifests DIR | contract --server URL --held-server URL --control URL --kubeconfig FILE
 * --node-kubeconfig FILE ... [--filter GLOB]: every case against one of the two worlds (contract-rig.h).
 * Exit status: 0, or the number of failures. */
#include "contract-rig.h"

#include <getopt.h>
#include <stdio.h>
#include <unistd.h>

#include "alloc-util.h"

enum {
        OPTION_FAKE = 256,
        OPTION_MANIFESTS,
        OPTION_SERVER,
        OPTION_HELD_SERVER,
        OPTION_CONTROL,
        OPTION_FILTER,
        OPTION_KUBECONFIGS, /* + RigWho */
};

static const struct option options[] = {
        { "fake", no_argument, NULL, OPTION_FAKE },
        { "manifests", required_argument, NULL, OPTION_MANIFESTS },
        { "server", required_argument, NULL, OPTION_SERVER },
        { "held-server", required_argument, NULL, OPTION_HELD_SERVER },
        { "control", required_argument, NULL, OPTION_CONTROL },
        { "filter", required_argument, NULL, OPTION_FILTER },
        { "kubeconfig", required_argument, NULL, OPTION_KUBECONFIGS + RIG_ADMIN },
        { "node-kubeconfig", required_argument, NULL, OPTION_KUBECONFIGS + RIG_NODE },
        { "other-node-kubeconfig", required_argument, NULL, OPTION_KUBECONFIGS + RIG_OTHER_NODE },
        { "coordinator-kubeconfig", required_argument, NULL, OPTION_KUBECONFIGS + RIG_COORDINATOR },
        { "stranger-kubeconfig", required_argument, NULL, OPTION_KUBECONFIGS + RIG_STRANGER },
        { "nobody-kubeconfig", required_argument, NULL, OPTION_KUBECONFIGS + RIG_NOBODY },
        { 0 },
};

static bool parse(int argc, char **argv, RigOptions *ret) {
        int c;

        while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0)
                switch (c) {
                case OPTION_FAKE:
                        ret->fake = true;
                        break;
                case OPTION_MANIFESTS:
                        ret->manifests = optarg;
                        break;
                case OPTION_SERVER:
                        ret->server = optarg;
                        break;
                case OPTION_HELD_SERVER:
                        ret->held_server = optarg;
                        break;
                case OPTION_CONTROL:
                        ret->control = optarg;
                        break;
                case OPTION_FILTER:
                        cmocka_set_test_filter(optarg);
                        break;
                default:
                        if (c < OPTION_KUBECONFIGS)
                                return false;
                        ret->kubeconfigs[c - OPTION_KUBECONFIGS] = optarg;
                }
        if (optind < argc)
                return false;
        if (ret->fake)
                return ret->manifests;
        for (RigWho who = 0; who < _RIG_WHO_MAX; who++)
                if (!ret->kubeconfigs[who] && who != RIG_HELD)
                        return false;
        return ret->server && ret->held_server && ret->control;
}

/* cmocka hands a state only to tests that name it. */
static int run_suite(const ContractSuite *suite, Rig *r) {
        _cleanup_free_ struct CMUnitTest *cases = new0(struct CMUnitTest, suite->n_cases);

        if (!cases)
                return 1;
        for (size_t i = 0; i < suite->n_cases; i++) {
                cases[i] = suite->cases[i];
                cases[i].initial_state = r;
        }
        return _cmocka_run_group_tests(suite->name, cases, suite->n_cases, NULL, NULL);
}

int main(int argc, char **argv) {
        static const ContractSuite *const suites[] = {
                &contract_api,      &contract_list,        &contract_watch,  &contract_patch,
                &contract_delete,   &contract_evict,       &contract_status, &contract_node_credential,
                &contract_agent,    &contract_coordinator, &contract_lease,  &contract_informer,
                &contract_protobuf, &contract_fields,      &contract_admission,
        };
        _cleanup_(rig_freep) Rig *r = NULL;
        RigOptions o = { 0 };
        int failed = 0;

        if (!parse(argc, argv, &o)) {
                fprintf(stderr,
                        "usage: %s --fake --manifests DIR | --server URL --held-server URL --control URL "
                        "--kubeconfig FILE --{node,other-node,coordinator,stranger,nobody}-kubeconfig "
                        "FILE\n",
                        argv[0]);
                return 2;
        }
        r = rig_new(&o);
        if (!r)
                return 1;
        for (size_t i = 0; i < ELEMENTSOF(suites); i++)
                failed += run_suite(suites[i], r);
        if (failed > 0) {
                /* Cases that gave up have left calls behind: the rig cannot be taken apart. */
                fflush(NULL);
                _exit(MIN(failed, 100));
        }
        return 0;
}
