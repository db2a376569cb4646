/* MC(N,K) as one would write it for SPIN: a process for each node, a channel for each inbox. A sorted send (!!) and a
 * random receive (??) make the channels bags, so that the network is unordered. The same states and steps as in
 * `mc.pml`, which spares SPIN the channels.
 */
#ifndef N
#define N 3
#endif
#ifndef K
#define K 1
#endif
mtype = { IDLE, WANTING, HELD, REQUEST, REPLY };
chan inbox[N] = [2 * (N - 1)] of { mtype, byte, byte };   /* what, from whom, timestamp */
byte inside;                                              /* how many are in the critical section */

#define FROM(f) \
  :: d_step { inbox[_pid]??REQUEST, f, x -> \
       if :: x > clock -> clock = x :: else fi; \
       if :: phase == HELD || (phase == WANTING && (own < x || (own == x && _pid < f))) -> \
               deferred = deferred | (1 << f) \
          :: else -> inbox[f]!!REPLY, _pid, 0 \
       fi; x = 0 } \
  :: d_step { inbox[_pid]??REPLY, f, 0 -> \
       replies++; \
       if :: replies == N - 1 -> phase = HELD; inside++; assert(inside <= 1) :: else fi }

active [N] proctype node() {
  byte clock, own, replies, deferred, left = K, x;
  mtype phase = IDLE;
end:
  do
  :: d_step { phase == IDLE && left > 0 ->
       left--; clock++; own = clock; phase = WANTING;
       do :: x < N -> if :: x != _pid -> inbox[x]!!REQUEST, _pid, own :: else fi; x++ :: else -> break od; x = 0 }
  :: d_step { phase == HELD ->
       phase = IDLE; inside--; own = 0; replies = 0;
       do :: x < N -> if :: (deferred >> x) & 1 -> inbox[x]!!REPLY, _pid, 0 :: else fi; x++ :: else -> break od;
       deferred = 0; x = 0 }
  FROM(0) FROM(1)
#if N > 2
  FROM(2)
#endif
#if N > 3
  FROM(3)
#endif
  od
}
