/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Intrusive doubly linked list with a head that knows its tail. An element is in at most one list per ListNode. */

#include <stdbool.h>
#include <stddef.h>

#include "macro.h"

typedef struct ListNode {
        struct ListNode *prev, *next;
} ListNode;

typedef struct List {
        ListNode *first, *last;
        size_t size;
} List;

static inline void list_append(List *l, ListNode *n) {
        n->prev = l->last;
        n->next = NULL;
        if (l->last)
                l->last->next = n;
        else
                l->first = n;
        l->last = n;
        l->size++;
}

static inline void list_prepend(List *l, ListNode *n) {
        n->next = l->first;
        n->prev = NULL;
        if (l->first)
                l->first->prev = n;
        else
                l->last = n;
        l->first = n;
        l->size++;
}

/* Removing an element that is in no list is a bug, but of a zeroed ListNode that is not the only element it is caught. */
static inline void list_remove(List *l, ListNode *n) {
        assert(l->size > 0);
        if (n->prev)
                n->prev->next = n->next;
        else
                l->first = n->next;
        if (n->next)
                n->next->prev = n->prev;
        else
                l->last = n->prev;
        n->prev = n->next = NULL;
        l->size--;
}

#define LIST_ENTRY(n, type, member) ((n) ? CONTAINER_OF((n), type, member) : NULL)

/* The loop variable may be removed (and freed) in the body. */
#define LIST_FOREACH(i, l, type, member) \
        for (type *i = LIST_ENTRY((l)->first, type, member), *i##_next = NULL; \
             i && (i##_next = LIST_ENTRY(i->member.next, type, member), true); i = i##_next)
