/*
 * relay-load HOST PORT PAIRS PAYLOAD SECONDS RATE TIMED WINDOW - load for a relay that speaks the documented frames.
 *
 * PAIRS connections register as senders, PAIRS as receivers; sender i sends Data frames of PAYLOAD bytes to receiver i.
 * RATE is messages a second over all pairs, spread evenly; 0 sends as fast as the sockets take it, 16 frames a write.
 * A frame that a socket does not take is not sent (a client's proxy would drop the datagram) and counts as refused.
 * With a WINDOW the loop is closed: so many messages of each pair are on their way, each written by itself, and the next
 * one goes when one has come out; nothing is lost, and RATE is not looked at. 0: no window.
 *
 * Prints one line of JSON: seconds of the measurement, messages that the sockets took and that came out during it, both
 * totals at the end, when nothing has come for 300 ms, refused, and, if TIMED is 1, microseconds from write to read (p50,
 * p99); else receivers throw away what they get without looking at it. The first 300 ms warm up and are not measured.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HEAD 37 /* u32be length, type, key */
#define STAMP 8 /* nanoseconds, at the payload's beginning */
#define BATCH 16
#define WARM_UP 300000000ull
#define QUIET 300000000ull
#define TICK 100000	/* with a rate: time between two looks at what is due */
#define FULL 20000	/* without: time to wait for room in the sockets */
#define MAX_SAMPLES 2000000

struct sender {
	int fd;
	size_t partial; /* bytes of the last write that are still to be sent */
	uint64_t due;	/* messages that were due so far */
};

struct receiver {
	int fd;
	size_t at; /* position in the current frame */
	unsigned char stamp[STAMP];
	size_t rest; /* with a window: bytes of a frame that has not wholly come */
};

static size_t frame_bytes;
static uint64_t taken, refused;
static uint64_t delivered_bytes; /* written by the receivers' thread only */
static int ending; /* with a window: no more messages */
static int measuring, timed, window, poll_fd;
static struct receiver *receivers;
static struct sender *senders;
static uint32_t *samples;
static size_t sample_count;
static unsigned char *batch; /* BATCH frames of the current sender */
static unsigned char *sink;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void make_key(unsigned char *key, int role, int index)
{
	memset(key, 0x5a, 32);
	key[0] = role;
	memcpy(key + 1, &index, sizeof(index));
}

static int join(const struct sockaddr_in *address, int role, int index)
{
	unsigned char frame[HEAD] = {0, 0, 0, 33, 1};
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof(*address)))
		fail("relay-load: connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	make_key(frame + 5, role, index);
	if (write(fd, frame, HEAD) != HEAD)
		fail("relay-load: register");
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

static void prepare(int index, size_t count)
{
	uint64_t time = now();

	for (size_t i = 0; i < count; i++) {
		unsigned char *frame = batch + i * frame_bytes;

		make_key(frame + 5, 'r', index);
		memcpy(frame + HEAD, &time, STAMP);
	}
}

/* The rest of a frame that a socket took in part has to follow before anything else. */
static int finish_partial(struct sender *sender)
{
	while (sender->partial > 0) {
		/* Payload only: a partial write that ended within a head is completed at once, see send_batch. */
		ssize_t sent = send(sender->fd, batch + HEAD + STAMP, sender->partial, MSG_NOSIGNAL);

		if (sent < 0)
			return 0;
		sender->partial -= sent;
	}
	return 1;
}

static size_t send_batch(struct sender *sender, int index, size_t count)
{
	ssize_t sent;
	size_t whole, rest;

	if (!finish_partial(sender))
		return 0;
	prepare(index, count);
	sent = send(sender->fd, batch, count * frame_bytes, MSG_NOSIGNAL);
	if (sent < 0) {
		if (errno != EAGAIN)
			fail("relay-load: send");
		return 0;
	}
	whole = sent / frame_bytes;
	rest = sent % frame_bytes;
	if (rest == 0)
		return whole;
	/* Head and stamp must go as they are; they are few bytes, so wait for them. */
	while (rest < HEAD + STAMP) {
		struct timespec pause = {.tv_nsec = 20000};
		ssize_t more = send(sender->fd, batch + whole * frame_bytes + rest, HEAD + STAMP - rest, MSG_NOSIGNAL);

		if (more > 0)
			rest += more;
		else
			nanosleep(&pause, NULL);
	}
	sender->partial = frame_bytes - rest;
	return whole + 1;
}

static void sample(struct receiver *receiver, uint64_t time)
{
	uint64_t sent;

	memcpy(&sent, receiver->stamp, STAMP);
	if (__atomic_load_n(&measuring, __ATOMIC_RELAXED) && sample_count < MAX_SAMPLES)
		samples[sample_count++] = (time - sent) / 1000;
}

/* Walks over the frames, each of the same length, and takes the stamps. */
static void read_stamps(struct receiver *receiver, const unsigned char *bytes, size_t length)
{
	uint64_t time = now();

	for (size_t at = 0; at < length;) {
		size_t position = receiver->at, step = 1;

		if (position >= HEAD && position < HEAD + STAMP) {
			receiver->stamp[position - HEAD] = bytes[at];
			if (position == HEAD + STAMP - 1)
				sample(receiver, time);
		} else {
			step = (position < HEAD ? HEAD : frame_bytes) - position;
			if (step > length - at)
				step = length - at;
		}
		at += step;
		receiver->at = (position + step) % frame_bytes;
	}
}

/* One message in a write of its own. The window is far below what a socket holds. */
static void send_one(int index)
{
	prepare(index, 1);
	if (send(senders[index].fd, batch, frame_bytes, MSG_NOSIGNAL) != (ssize_t)frame_bytes)
		fail("relay-load: a message of the window");
	__atomic_store_n(&taken, taken + 1, __ATOMIC_RELAXED);
}

static void answer(struct receiver *receiver, size_t length)
{
	receiver->rest += length;
	for (; receiver->rest >= frame_bytes; receiver->rest -= frame_bytes)
		if (!__atomic_load_n(&ending, __ATOMIC_RELAXED))
			send_one(receiver - receivers);
}

static int receive(struct receiver *receiver)
{
	/* MSG_TRUNC throws the bytes away without copying them. */
	ssize_t length = recv(receiver->fd, sink, 1 << 20, timed ? 0 : MSG_TRUNC);

	if (length < 0 && errno == EAGAIN)
		return 0;
	if (length <= 0) {
		fprintf(stderr, "relay-load: the relay closed a receiver\n");
		exit(1);
	}
	__atomic_store_n(&delivered_bytes, delivered_bytes + length, __ATOMIC_RELAXED);
	if (timed)
		read_stamps(receiver, sink, length);
	if (window)
		answer(receiver, length);
	return 1;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static unsigned percentile(double share)
{
	return sample_count ? samples[(size_t)(share * (sample_count - 1))] : 0;
}

/* A thread of its own: receivers that wait while senders send would be what is measured. */
static void *receive_all(void *unused)
{
	struct epoll_event events[256];

	for (;;) {
		int count = epoll_wait(poll_fd, events, 256, -1);

		for (int i = 0; i < count; i++)
			/* With a window once: who is answered at once would be the only one who ever gets a turn. */
			while (receive(&receivers[events[i].data.u32]) && !window)
				;
	}
	return unused;
}

static uint64_t delivered(void)
{
	return __atomic_load_n(&delivered_bytes, __ATOMIC_RELAXED);
}

/* One look at all senders; with a rate only at those with something due. */
static void send_due(int pairs, double rate, uint64_t elapsed)
{
	for (int index = 0; index < pairs; index++) {
		struct sender *sender = &senders[index];
		uint64_t count = BATCH, due;
		size_t sent;

		if (rate > 0) {
			due = (uint64_t)(elapsed * (rate / pairs) / 1e9 + (double)index / pairs);
			count = due - sender->due;
			sender->due = due;
		}
		while (count > 0) {
			size_t part = count < BATCH ? count : BATCH;

			sent = send_batch(sender, index, part);
			taken += sent;
			if (sent < part) {
				refused += count - sent;
				break;
			}
			count -= part;
		}
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	uint64_t start, end, begin_taken = 0, begin_bytes = 0, measured = 0, before, end_taken, end_bytes;
	struct timespec look = {.tv_nsec = 10000000};
	pthread_t thread;
	int pairs;
	double rate;

	if (argc != 9 || inet_pton(AF_INET, argv[1], &address.sin_addr) != 1) {
		fprintf(stderr, "usage: relay-load IPV4-ADDRESS PORT PAIRS PAYLOAD SECONDS RATE TIMED WINDOW\n");
		return 2;
	}
	address.sin_port = htons(atoi(argv[2]));
	pairs = atoi(argv[3]);
	frame_bytes = HEAD + atoi(argv[4]);
	rate = atof(argv[6]);
	timed = atoi(argv[7]);
	window = atoi(argv[8]);
	senders = calloc(pairs, sizeof(*senders));
	receivers = calloc(pairs, sizeof(*receivers));
	batch = calloc(BATCH, frame_bytes);
	sink = malloc(1 << 20);
	samples = malloc(MAX_SAMPLES * sizeof(*samples));
	poll_fd = epoll_create1(0);
	for (size_t i = 0; i < BATCH; i++) {
		uint32_t length = htonl(frame_bytes - 4);

		memcpy(batch + i * frame_bytes, &length, 4);
		batch[i * frame_bytes + 4] = 2;
		memset(batch + i * frame_bytes + HEAD, 4, frame_bytes - HEAD); /* as WireGuard's transport data */
	}
	for (int i = 0; i < pairs; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};

		receivers[i].fd = join(&address, 'r', i);
		epoll_ctl(poll_fd, EPOLL_CTL_ADD, receivers[i].fd, &event);
	}
	usleep(100000); /* receivers are registered before anybody sends to them */
	for (int i = 0; i < pairs; i++)
		senders[i].fd = join(&address, 's', i);
	usleep(50000);
	for (int i = 0; i < pairs * window; i++)
		send_one(i % pairs);
	if (pthread_create(&thread, NULL, receive_all, NULL))
		fail("relay-load: thread");
	start = now();
	end = start + WARM_UP + (uint64_t)(atof(argv[5]) * 1e9);
	for (;;) {
		uint64_t time = now();

		if (!measured && time - start >= WARM_UP) {
			begin_taken = __atomic_load_n(&taken, __ATOMIC_RELAXED);
			begin_bytes = delivered();
			__atomic_store_n(&measuring, 1, __ATOMIC_RELAXED);
			measured = time;
		}
		if (time >= end)
			break;
		if (window) {
			nanosleep(&look, NULL);
			continue;
		}
		before = taken;
		send_due(pairs, rate, time - start);
		if (rate > 0 || taken == before) {
			struct timespec pause = {.tv_nsec = rate > 0 ? TICK : FULL};

			nanosleep(&pause, NULL);
		}
	}
	end = now();
	__atomic_store_n(&ending, 1, __ATOMIC_RELAXED);
	end_taken = __atomic_load_n(&taken, __ATOMIC_RELAXED);
	end_bytes = delivered();
	__atomic_store_n(&measuring, 0, __ATOMIC_RELAXED);
	for (uint64_t last = now(), seen = end_bytes; now() - last < QUIET; nanosleep(&look, NULL)) {
		for (int i = 0; i < pairs; i++)
			finish_partial(&senders[i]);
		if (delivered() != seen)
			last = now();
		seen = delivered();
	}
	qsort(samples, sample_count, sizeof(*samples), by_value);
	printf("{\"seconds\":%.3f,\"taken\":%lu,\"delivered\":%lu,\"takenInAll\":%lu,\"deliveredInAll\":%lu,\"refused\":%lu,"
	       "\"p50us\":%u,\"p99us\":%u}\n",
	       (end - measured) / 1e9, end_taken - begin_taken, (end_bytes - begin_bytes) / frame_bytes, taken,
	       delivered() / frame_bytes, refused, percentile(0.5), percentile(0.99));
	return 0;
}
