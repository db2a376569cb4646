/* MC(N,K): Ricart and Agrawala's lock, N nodes that want in K times each, coarse steps, as `mc.rs` has it.
 *
 * Written to be as cheap for SPIN as we know how: one process, every step a d_step, and no channels. A node
 * asks again only when all have replied, so there is at most one request and one reply under way from one
 * node to another; a byte and a bit hold them, and the network is a bag. -DFIFO is not offered.
 */
#ifndef N
#define N 3
#endif
#ifndef K
#define K 1
#endif
#define IDLE 0
#define WANTING 1
#define HELD 2
#define AT(i, j) ((i) * N + (j))

byte clock[N];            /* the highest timestamp seen in requests, or used */
byte phase[N];
byte own[N];              /* the timestamp of its request, 0 when idle */
byte replies[N];          /* so far, 0 when idle */
byte deferred[N];         /* who waits for its reply, as bits */
byte left[N] = K;
byte request[N * N];      /* the timestamp on its way, or 0 */
bit reply[N * N];
hidden byte x;            /* no part of the state */

#define ASK(i) \
  :: d_step { phase[i] == IDLE && left[i] > 0 -> \
       left[i]--; clock[i]++; own[i] = clock[i]; phase[i] = WANTING; x = 0; \
       do :: x < N -> if :: x != i -> request[AT(i, x)] = own[i] :: else fi; x++ :: else -> break od; \
       x = 0 }

#define LEAVE(i) \
  :: d_step { phase[i] == HELD -> \
       phase[i] = IDLE; own[i] = 0; replies[i] = 0; x = 0; \
       do :: x < N -> if :: (deferred[i] >> x) & 1 -> reply[AT(i, x)] = 1 :: else fi; x++ :: else -> break od; \
       deferred[i] = 0; x = 0 }

#define TAKE_REQUEST(f, i) \
  :: d_step { request[AT(f, i)] > 0 -> \
       x = request[AT(f, i)]; request[AT(f, i)] = 0; \
       if :: x > clock[i] -> clock[i] = x :: else fi; \
       if :: phase[i] == HELD || (phase[i] == WANTING && (own[i] < x || (own[i] == x && i < f))) -> \
               deferred[i] = deferred[i] | (1 << f) \
          :: else -> reply[AT(i, f)] = 1 \
       fi; x = 0 }

#define TAKE_REPLY(f, i) \
  :: d_step { reply[AT(f, i)] -> \
       reply[AT(f, i)] = 0; replies[i]++; \
       if :: replies[i] == N - 1 -> phase[i] = HELD :: else fi; \
       x = 0; \
       if :: phase[0] == HELD -> x++ :: else fi; \
       if :: phase[1] == HELD -> x++ :: else fi; \
       if :: N > 2 && phase[2 % N] == HELD -> x++ :: else fi; \
       if :: N > 3 && phase[3 % N] == HELD -> x++ :: else fi; \
       assert(x <= 1); x = 0 }

#define PAIR(f, i) TAKE_REQUEST(f, i) TAKE_REPLY(f, i) TAKE_REQUEST(i, f) TAKE_REPLY(i, f)

active proctype world() {
end:
  do
  ASK(0) LEAVE(0)
  ASK(1) LEAVE(1)
  PAIR(0, 1)
#if N > 2
  ASK(2) LEAVE(2)
  PAIR(0, 2) PAIR(1, 2)
#endif
#if N > 3
  ASK(3) LEAVE(3)
  PAIR(0, 3) PAIR(1, 3) PAIR(2, 3)
#endif
  od
}
