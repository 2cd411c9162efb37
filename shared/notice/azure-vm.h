/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * azure-vm.c: pure. What Azure calls a VM in its instance metadata (compute/name) and in the resources of scheduled events, by the
 * providerID of its Node: the VM's name, for a member of a uniform scale set SCALESET_NUMBER. The case of letters does not matter.
 */

#include <stdbool.h>

#define AZURE_VM_NAME_MAX 160u

/* False: it is no VM of Azure's, or its name is too long; then ret is "". provider_id may be NULL. */
bool azure_vm_name(const char *provider_id, char ret[static AZURE_VM_NAME_MAX + 1]);
