/* Interfaces that the agent has put into a pod get their addresses there: it may not enter the pod's namespace, this program may. */
#pragma once

#include "answer_layout.h"

#define SETTLE_PROBLEM 192

/* Enters the namespace and stays there. Returns 0, or -1 with what is wrong in words. */
int settle_interfaces(const char *netns, const struct settle *settle, char problem[SETTLE_PROBLEM]);
