/* SPDX-License-Identifier: Apache-2.0 */
#include "ec2-scope.h"

#include "aws-settings.h"
#include "string-util.h"

int ec2_scope_init(Ec2Scope *s) {
        *s = (Ec2Scope){ 0 };
        return hashmap_new(0, &s->seen);
}

void ec2_scope_done(Ec2Scope *s) {
        hashmap_free(s->seen);
        free(s->principal);
        *s = (Ec2Scope){ 0 };
}

void ec2_scope_set_principal(Ec2Scope *s, const char *principal) {
        if (streq_ptr(s->principal, principal))
                return;
        hashmap_clear(s->seen);
        if (free_and_strdup(&s->principal, principal) < 0)
                s->principal = mfree(s->principal);
}

/* Losing one for want of memory only makes us more careful. */
void ec2_scope_note(Ec2Scope *s, const char *instance_id) {
        const char *oldest;

        if (!s->principal || hashmap_contains(s->seen, instance_id))
                return;
        if (hashmap_size(s->seen) >= EC2_SCOPE_SEEN_MAX && hashmap_first(s->seen, &oldest))
                hashmap_remove(s->seen, oldest);
        (void) hashmap_put(s->seen, instance_id, s);
}

static bool zones_agree(const char *region, const Ec2ProviderId *id, const char *zone) {
        return aws_zone_is_in_region(zone, region) &&
               (!*id->zone || streq(id->zone, zone) || streq(id->zone, region));
}

void ec2_scope_note_described(Ec2Scope *s, const char *region, const Ec2ProviderId *id,
                              const Ec2Instance *shown) {
        if (shown->zone && zones_agree(region, id, shown->zone))
                ec2_scope_note(s, id->instance_id);
}

bool ec2_scope_is_proved(const Ec2Scope *s, const Ec2ProviderId *id) {
        return *id->zone ? hashmap_size(s->seen) > 0 : hashmap_contains(s->seen, id->instance_id);
}

char *ec2_scope_unproved_message(const char *region, const Ec2ProviderId *id) {
        if (!*id->zone)
                return strf("Instance %s is not visible in region %s; its providerID names no zone, so it may live in another region, and it counts as gone only if these credentials have seen it here before",
                            id->instance_id, region);
        return strf(
                "Instance %s is not visible in region %s with these credentials; it counts as gone only once they have seen another instance of this cluster there: check the provider's region and account",
                id->instance_id, region);
}

int ec2_scope_contradiction(const char *region, const Ec2ProviderId *id, const Ec2Instance *shown,
                            char **ret_message) {
        *ret_message = NULL;
        if (!shown->zone || zones_agree(region, id, shown->zone))
                return 0;
        *ret_message = strf("EC2 says that instance %s is in zone %s, which contradicts %s %s",
                            id->instance_id, shown->zone, *id->zone ? "the providerID's zone" : "region",
                            *id->zone ? id->zone : region);
        return *ret_message ? 0 : -ENOMEM;
}
