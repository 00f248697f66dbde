#pragma once

// libdispatch exports these two for run loops of others ("4CF"); its installed headers do not declare them. Foundation
// for Linux imports the same two. On Linux the port is an eventfd, readable while the main queue has work.
int _dispatch_get_main_queue_port_4CF(void);
void _dispatch_main_queue_callback_4CF(void *ignored);

// Nonzero on the first thread of the process, the only one that may drain the main queue.
int vitrine_is_first_thread(void);
