/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * vesper-agent --notices: every feed of every source that the agent would poll is asked once, and what stands is shown
 * together with what [Policy] makes of it now. Nothing is written, and a running agent is not asked: what it has done about
 * a notice stands on its Node.
 *
 * The sources are the agent's own, so that both see the same. Of a cloud that the firmware does not name the providerID of the
 * Node is asked for, as an agent does; metadata of another machine than that names counts as not answered. An answer that does not
 * come within 8 s (35 s where a command is run, which may take 30) is none.
 */

#include <stdio.h>

#include "agent-config.h"
#include "env.h"
#include "kube-client.h"

typedef struct NoticeSurvey NoticeSurvey;

/* All borrowed, all outlive it; client: NULL where there is no credential. on_done comes once, from the loop. 0; -ENOMEM; -EINVAL:
 * [Policy] cannot be read. */
int notice_survey_new(Env *env, const AgentConfig *config, KubeClient *client, void (*on_done)(void *userdata), void *userdata,
                      NoticeSurvey **ret);
NoticeSurvey *notice_survey_free(NoticeSurvey *s);
DEFINE_FREEP(NoticeSurvey, notice_survey_free);

/* Has every feed answered? Else there may be more than is shown. */
bool notice_survey_is_whole(const NoticeSurvey *s);
size_t notice_survey_n_notices(const NoticeSurvey *s);
/* For people. */
void notice_survey_print(const NoticeSurvey *s, FILE *to);
/* {"dryRun", "feeds": [{source, feed, answer, message}], "notices": [{kind, id, source, action, notBefore, deadline, advisory,
 * plan, begin, until, reason}]}: vesper-agent(8). 0 or -ENOMEM. */
int notice_survey_print_json(const NoticeSurvey *s, FILE *to);
