/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whose instance it is. A kubelet writes spec.providerID itself, so it may name any instance; its Node's name it cannot
 * choose freely: the API server lets it write no other Node. So EC2's own record has to lead to that name. Pure.
 *
 *      PrivateDNSName   the Node's name is the instance's private DNS name, as the AWS cloud provider names Nodes
 *      InstanceID       the first label of the Node's name is the instance id (resource-based names)
 *      Tag              the instance has the tag vesper.sh/node with the Node's name as its value
 *
 * An instance that has ended has no private DNS name any more; its tags stay for about an hour.
 */

#include "ec2-answer.h"

/* The method, or NULL: nothing leads from this instance to that name. node NULL: nothing can. */
const char *ec2_identity_method(const Ec2Instance *shown, const char *node);
/* What was compared, and which tag would prove it, for a person. Not sanitized. NULL on ENOMEM. */
char *ec2_identity_unproved_message(const Ec2Instance *shown, const char *node);
