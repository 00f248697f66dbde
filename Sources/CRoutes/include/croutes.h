#ifndef CROUTES_H
#define CROUTES_H

/// A socket that becomes readable when addresses or routes of this machine change (rtnetlink(7)); -1 where there is
/// none.
int croutes_open(void);

#endif
