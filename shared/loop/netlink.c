/* SPDX-License-Identifier: Apache-2.0 */
#include "netlink.h"

#include <sys/epoll.h>

#include <linux/rtnetlink.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <systemd/sd-event.h>

#include "alloc-util.h"

/* Changes come in bursts (a link, then its routes): one call for all of them. */
#define COALESCE_USEC (100 * USEC_PER_MSEC)

typedef struct RouteNetlink {
        Netlink netlink;
        struct nl_sock *socket;
        sd_event_source *source;
        Timer *coalesce;
        netlink_changed_t fn; /* NULL: no subscriber */
        void *userdata;
} RouteNetlink;

static RouteNetlink *to_route(Netlink *n) {
        return CONTAINER_OF(n, RouteNetlink, netlink);
}

/* The first change of a burst sets the time; later ones do not put it off. */
static void note_change(RouteNetlink *n) {
        if (n->fn && !timer_is_armed(n->coalesce))
                timer_arm_in(n->coalesce, COALESCE_USEC);
}

static void on_coalesced(Timer *t, void *userdata) {
        RouteNetlink *n = userdata;

        if (n->fn)
                n->fn(n->userdata);
}

/* What goes away opens no way. */
static int on_message(struct nl_msg *message, void *userdata) {
        int type = nlmsg_hdr(message)->nlmsg_type;

        if (type == RTM_NEWLINK || type == RTM_NEWROUTE)
                note_change(userdata);
        return NL_OK;
}

static int on_readable(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        RouteNetlink *n = userdata;
        int r;

        r = nl_recvmsgs_default(n->socket);
        if (r == -NLE_NOMEM) {
                note_change(n); /* the kernel dropped some: as good as a change */
                return 0;
        }
        /* A socket that stays readable and cannot be read would keep the loop busy for ever; retries do
         * without. */
        if (r < 0 && r != -NLE_AGAIN && r != -NLE_INTR)
                (void) sd_event_source_set_enabled(s, SD_EVENT_OFF);
        return 0;
}

static void route_subscribe(Netlink *netlink, netlink_changed_t fn, void *userdata) {
        RouteNetlink *n = to_route(netlink);

        n->fn = fn;
        n->userdata = userdata;
        if (!fn)
                timer_disarm(n->coalesce);
}

static void route_free(Netlink *netlink) {
        RouteNetlink *n = to_route(netlink);

        sd_event_source_disable_unref(n->source);
        timer_free(n->coalesce);
        nl_socket_free(n->socket);
        free(n);
}

static const NetlinkOps route_ops = {
        .subscribe = route_subscribe,
        .free = route_free,
};

/* libnl has error numbers of its own. */
static int errno_from_nl(int error) {
        switch (-error) {
        case NLE_NOMEM:
                return -ENOMEM;
        case NLE_PERM:
        case NLE_NOACCESS:
                return -EPERM;
        case NLE_AF_NOSUPPORT:
        case NLE_OPNOTSUPP:
        case NLE_PROTO_MISMATCH:
                return -EOPNOTSUPP;
        default:
                return -EIO;
        }
}

static int route_connect(RouteNetlink *n) {
        int r;

        n->socket = nl_socket_alloc();
        if (!n->socket)
                return -ENOMEM;

        nl_socket_disable_seq_check(n->socket); /* what comes unasked has no sequence */
        r = nl_socket_modify_cb(n->socket, NL_CB_VALID, NL_CB_CUSTOM, on_message, n);
        if (r >= 0)
                r = nl_connect(n->socket, NETLINK_ROUTE);
        if (r >= 0)
                r = nl_socket_set_nonblocking(n->socket);
        if (r >= 0)
                r = nl_socket_add_memberships(n->socket, RTNLGRP_LINK, RTNLGRP_IPV4_ROUTE,
                                              RTNLGRP_IPV6_ROUTE, 0);
        return r < 0 ? errno_from_nl(r) : 0;
}

static int route_watch(RouteNetlink *n, sd_event *event) {
        int r;

        r = sd_event_add_io(event, &n->source, nl_socket_get_fd(n->socket), EPOLLIN, on_readable, n);
        if (r < 0)
                return r;
        r = sd_event_source_set_priority(n->source, SD_EVENT_PRIORITY_NORMAL);
        if (r < 0)
                return r;
        return sd_event_source_set_description(n->source, "netlink");
}

int netlink_new(Loop *l, Netlink **ret) {
        _cleanup_(netlink_freep) Netlink *netlink = NULL;
        RouteNetlink *n;
        int r;

        assert(l);
        assert(ret);
        if (!loop_sd_event(l))
                return -EOPNOTSUPP;

        n = new0(RouteNetlink, 1);
        if (!n)
                return -ENOMEM;
        n->netlink.ops = &route_ops;
        netlink = &n->netlink;

        r = timer_new(l, "netlink burst", on_coalesced, n, &n->coalesce);
        if (r < 0)
                return r;
        r = route_connect(n);
        if (r < 0)
                return r;
        r = route_watch(n, loop_sd_event(l));
        if (r < 0)
                return r;
        *ret = TAKE_PTR(netlink);
        return 0;
}

Netlink *netlink_free(Netlink *n) {
        if (n)
                n->ops->free(n);
        return NULL;
}
