/* SPDX-License-Identifier: Apache-2.0 */
#include "azure-vm.h"

#include <stdio.h>
#include <strings.h>

#include "string-util.h"

#define SCHEME "azure://"

/* The part behind /SEGMENT/ (any case), as far as the next slash. */
static bool find_segment(const char *path, const char *segment, const char **ret, size_t *ret_size) {
        size_t n = strlen(segment);

        for (const char *at = strchr(path, '/'); at; at = strchr(at + 1, '/'))
                if (strncasecmp(at + 1, segment, n) == 0 && at[1 + n] == '/') {
                        *ret = at + 2 + n;
                        *ret_size = strcspn(*ret, "/");
                        return *ret_size > 0;
                }
        return false;
}

bool azure_vm_name(const char *provider_id, char ret[static AZURE_VM_NAME_MAX + 1]) {
        const char *path = provider_id ? startswith(provider_id, SCHEME) : NULL, *vm, *set = NULL;
        size_t vm_size, set_size = 0;
        int n;

        ret[0] = 0;
        if (!path || !find_segment(path, "virtualMachines", &vm, &vm_size) || vm[vm_size])
                return false;
        if (!find_segment(path, "virtualMachineScaleSets", &set, &set_size))
                set_size = 0;
        n = snprintf(ret, AZURE_VM_NAME_MAX + 1, "%.*s%s%.*s", (int) MIN(set_size, AZURE_VM_NAME_MAX), strempty(set),
                     set_size > 0 ? "_" : "", (int) MIN(vm_size, AZURE_VM_NAME_MAX), vm);
        if (n > 0 && (unsigned) n <= AZURE_VM_NAME_MAX)
                return true;
        ret[0] = 0;
        return false;
}
