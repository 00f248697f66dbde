#include "cdownloads.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int cdownloads_has_route(const char *host) {
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    memset(&four, 0, sizeof four);
    memset(&six, 0, sizeof six);
    four.sin_family = AF_INET;
    six.sin6_family = AF_INET6;
    four.sin_port = six.sin6_port = htons(9);
    struct sockaddr *to;
    socklen_t size;
    if (inet_pton(AF_INET, host, &four.sin_addr) == 1) {
        to = (struct sockaddr *)&four;
        size = sizeof four;
    } else if (inet_pton(AF_INET6, host, &six.sin6_addr) == 1) {
        to = (struct sockaddr *)&six;
        size = sizeof six;
    } else {
        return -1;
    }
    // Connecting a datagram socket looks for a route and sends nothing.
    int s = socket(to->sa_family, SOCK_DGRAM, 0);
    if (s < 0) return 0;
    int result = connect(s, to, size) == 0;
    close(s);
    return result;
}

#if defined(__linux__)
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

int cdownloads_open_routes(void) {
    int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (descriptor < 0) return -1;
    struct sockaddr_nl address;
    memset(&address, 0, sizeof address);
    address.nl_family = AF_NETLINK;
    address.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_IFADDR | RTMGRP_IPV6_ROUTE;
    if (bind(descriptor, (struct sockaddr *)&address, sizeof address) != 0) {
        close(descriptor);
        return -1;
    }
    return descriptor;
}
#else
int cdownloads_open_routes(void) { return -1; }
#endif
