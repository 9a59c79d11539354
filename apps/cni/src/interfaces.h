/*
 * Interfaces that the agent has put into a pod. It may not enter the pod's network namespace (that takes CAP_SYS_ADMIN); this
 * program may.
 */
#pragma once

#include "answer_layout.h"

/* Holds every problem: a path of a namespace may be long. */
#define PROBLEM_SIZE 512

/*
 * Gives the interfaces of the answer their addresses and sets them up, one after the other. The process is in the pod's
 * network namespace from then on. Returns 0, or -1 and what failed.
 */
int settle_interfaces(const char *netns, const struct answer *answer, char problem[PROBLEM_SIZE]);
