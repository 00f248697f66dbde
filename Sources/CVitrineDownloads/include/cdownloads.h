// What downloads need of the system that Swift cannot say: news of routes, sockets of the agent, and its start.
#ifndef CDOWNLOADS_H
#define CDOWNLOADS_H

// A socket that becomes readable when addresses or routes of the machine change; -1 where the system does not tell.
int cdownloads_open_routes(void);

// Whether there is a route to an address, 1 or 0; -1 for what is none. Sends nothing.
int cdownloads_has_route(const char *host);

// Connects to a Unix socket, EAGAIN if nobody accepts within so many milliseconds; 0 waits for ever. Returns 0 or an
// error of errno(3).
int cdownloads_connect(const char *path, long milliseconds, int *descriptor);

// Lets reads or sends of a socket fail with EAGAIN after so many milliseconds; 0 for never.
int cdownloads_limit(int descriptor, int isReading, long milliseconds);

// Makes a Unix socket that only this user can connect to, in place of what is at the path. Returns 0 or an error.
int cdownloads_listen(const char *path, int *descriptor);

// Takes the next connection. Blocks. Returns 0 or an error.
int cdownloads_accept(int listener, int *descriptor);

// The user at the other end of a Unix socket, and its process; 0 where the system does not tell. Returns 0 or an error.
int cdownloads_peer(int descriptor, unsigned *user, int *process);

// Sends bytes without a signal if nobody reads them. As send(2).
long cdownloads_send(int descriptor, const void *bytes, unsigned long count);

// Starts a program that belongs to nobody: in a session of its own, without a terminal, in /, with nothing of this
// process but its environment. It has `ready` as descriptor 3. Returns 0 or an error; what the program itself fails
// with is not told.
int cdownloads_start(const char *program, char *const arguments[], int ready);

#endif
