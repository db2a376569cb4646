/* A client of Corosync's closed process groups that obeys the same orders as a member of ours
 * (member.rs), so that the same bench drives both: an order on a line of standard input, an answer in
 * JSON on a line of standard output, all times in nanoseconds of CLOCK_MONOTONIC.
 *
 *     join GROUP | part | views N | receive N | send BYTES N | latency BYTES N
 *
 * It ends with its standard input, and with its daemon. Debian's headers are in another package than
 * the library: what we use of <corosync/cpg.h> is declared here. */

#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { OK = 1, GONE = 2, TRY_AGAIN = 6 };    /* cs_error_t */
enum { DISPATCH_ONE = 1, DISPATCH_ALL = 2 }; /* cs_dispatch_flags_t: the first one waits */
enum { AGREED = 2 };                         /* cpg_guarantee_t: one order, not uniform */

struct cpg_name {
	uint32_t length;
	char value[128];
};
struct cpg_address {
	uint32_t node, pid, reason;
};
struct cpg_callbacks {
	void (*deliver)(uint64_t, const struct cpg_name *, uint32_t, uint32_t, void *, size_t);
	void (*change)(uint64_t, const struct cpg_name *, const struct cpg_address *, size_t,
		       const struct cpg_address *, size_t, const struct cpg_address *, size_t);
};
int cpg_initialize(uint64_t *, struct cpg_callbacks *);
int cpg_join(uint64_t, const struct cpg_name *);
int cpg_finalize(uint64_t);
int cpg_fd_get(uint64_t, int *);
int cpg_dispatch(uint64_t, int);
int cpg_mcast_joined(uint64_t, int, const struct iovec *, unsigned int);

enum { BURST = 512, WINDOW = 16384, ROUNDS = 100000 };

static uint64_t handle;
static int fd = -1;    /* readable when something has come; none without a group */
static size_t members; /* in the present view */
static long seen;      /* messages that no order has asked for yet */
static char message[1 << 16];

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void deliver(uint64_t h, const struct cpg_name *g, uint32_t node, uint32_t pid, void *bytes,
		    size_t length)
{
	(void)h, (void)g, (void)node, (void)pid, (void)bytes, (void)length;
	seen++;
}

static void change(uint64_t h, const struct cpg_name *g, const struct cpg_address *now_in, size_t n,
		   const struct cpg_address *left, size_t n_left, const struct cpg_address *joined,
		   size_t n_joined)
{
	(void)h, (void)g, (void)now_in, (void)left, (void)n_left, (void)joined, (void)n_joined;
	members = n;
}

/* Without its daemon there is nothing left to do; anything else is a mistake of ours. */
static void must(int result, const char *what)
{
	if (result == GONE)
		exit(1);
	if (result != OK) {
		fprintf(stderr, "%s: error %d\n", what, result);
		exit(2);
	}
}

/* A connection for each group: one that has left a group cannot join the next (Corosync 3.1.7 answers
 * that it is busy, for ever). */
static void join(const char *name)
{
	struct cpg_callbacks callbacks = { deliver, change };
	struct cpg_name group = { 0, "" };
	int result;
	members = 0, seen = 0;
	group.length = (uint32_t)snprintf(group.value, sizeof group.value, "%s", name);
	/* The daemon may not be up yet; whoever has started us ends this if it never is. */
	while (cpg_initialize(&handle, &callbacks) != OK) {
		struct pollfd given_up = { 0, 0, 0 };
		if (poll(&given_up, 1, 1) > 0 && (given_up.revents & POLLHUP))
			exit(1);
	}
	/* While a membership changes, it wants to be asked again. */
	while ((result = cpg_join(handle, &group)) == TRY_AGAIN)
		usleep(1000);
	must(result, "join");
	must(cpg_fd_get(handle, &fd), "fd");
}

static void part(void)
{
	fd = -1;
	must(cpg_finalize(handle), "part");
}

/* Hands one message to the daemon, which makes us wait when it has enough; whether it took it. */
static int sent(size_t bytes)
{
	struct iovec one = { message, bytes };
	int result = cpg_mcast_joined(handle, AGREED, &one, 1);
	if (result == TRY_AGAIN)
		return 0;
	must(result, "mcast");
	return 1;
}

static void receive(long count)
{
	while (seen < count)
		must(cpg_dispatch(handle, DISPATCH_ONE), "dispatch");
	seen -= count;
}

/* As many as it takes at once, in bursts, with deliveries in between: until all have come back. */
static void send_all(size_t bytes, long count)
{
	uint64_t start = now();
	long done = 0, full;
	while (seen < count) {
		int burst = BURST;
		full = 0;
		while (done < count && done < seen + WINDOW && burst-- > 0 && !full) {
			full = !sent(bytes);
			done += !full;
		}
		/* Waits only when there is nothing to send; a daemon that is full may be so for a
		 * moment only. */
		struct pollfd wait = { fd, POLLIN, 0 };
		int most = done == count || done >= seen + WINDOW ? -1 : full ? 1 : 0;
		if (poll(&wait, 1, most) > 0)
			must(cpg_dispatch(handle, DISPATCH_ALL), "dispatch");
	}
	seen -= count;
	printf("{\"start\":%llu,\"end\":%llu}\n", (unsigned long long)start,
	       (unsigned long long)now());
}

static int later(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* One at a time: from sending it to getting it back. */
static void latency(size_t bytes, long count)
{
	static uint64_t times[ROUNDS];
	for (long i = 0; i < count; i++) {
		uint64_t start = now();
		while (!sent(bytes))
			;
		receive(1);
		times[i] = now() - start;
	}
	qsort(times, (size_t)count, sizeof *times, later);
	printf("{\"p50\":%llu}\n", (unsigned long long)times[count / 2]);
}

static void obey(const char *order)
{
	long bytes, count;
	char name[100];
	if (sscanf(order, "join %99s", name) == 1) {
		join(name);
		printf("{}\n");
	} else if (strncmp(order, "part", 4) == 0) {
		part();
		printf("{}\n");
	} else if (sscanf(order, "views %ld", &count) == 1) {
		while (members != (size_t)count)
			must(cpg_dispatch(handle, DISPATCH_ONE), "dispatch");
		printf("{\"at\":%llu}\n", (unsigned long long)now());
	} else if (sscanf(order, "receive %ld", &count) == 1) {
		receive(count);
		printf("{\"end\":%llu}\n", (unsigned long long)now());
	} else if (sscanf(order, "send %ld %ld", &bytes, &count) == 2 && bytes >= 0 &&
		   bytes <= (long)sizeof message) {
		send_all((size_t)bytes, count);
	} else if (sscanf(order, "latency %ld %ld", &bytes, &count) == 2 && bytes >= 0 &&
		   bytes <= (long)sizeof message && count > 0 && count <= ROUNDS) {
		latency((size_t)bytes, count);
	} else {
		fprintf(stderr, "no such order: %s", order);
		exit(2);
	}
	fflush(stdout);
}

int main(void)
{
	char order[200];
	/* No line may wait in a buffer where poll does not see it. */
	setvbuf(stdin, NULL, _IONBF, 0);
	for (;;) {
		struct pollfd wait[] = { { 0, POLLIN, 0 }, { fd, POLLIN, 0 } };
		poll(wait, 2, -1);
		if (wait[1].revents)
			must(cpg_dispatch(handle, DISPATCH_ALL), "dispatch");
		if (wait[0].revents) {
			if (!fgets(order, sizeof order, stdin))
				return 0;
			obey(order);
		}
	}
}
