#define _GNU_SOURCE
#include "tun.h"
#include "in_netns.h"
#include "reader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

/* <net/if.h> and <linux/if.h> do not go together. */
extern unsigned int if_nametoindex(const char *name);

enum {
	LONGEST_PACKET = 512,
	LONGEST_RECORD = 2 + LONGEST_PACKET + 2,
	FLAGS = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR,
};

static const napi_type_tag TUN_TAG = { 0x74756e2070616972ULL, 0x6563686f20646576ULL };

static int attach(const char *name, int extra)
{
	struct ifreq request = { .ifr_flags = FLAGS };
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | extra);
	int error = 0;

	if (fd < 0)
		return -errno;
	memcpy(request.ifr_name, name, IFNAMSIZ);
	if (ioctl(fd, TUNSETIFF, &request))
		error = -errno;
	if (!error)
		return fd;
	close(fd);
	return error;
}

static int new_tun(void *argument)
{
	int fd = attach(argument, 0);
	int error = 0;

	if (fd < 0)
		return fd;
	if (ioctl(fd, TUNSETPERSIST, 1))
		error = -errno;
	close(fd);
	return error;
}

/* TUNSETIFF makes a device where there is none: such a one goes with its descriptor. */
static bool is_persistent(int fd)
{
	struct ifreq request = { 0 };

	return !ioctl(fd, TUNGETIFF, &request) && request.ifr_flags & IFF_PERSIST;
}

/* What an earlier process set stays with the device: a header of another size, and checksums and segments left to whoever reads. */
static int reset(int fd)
{
	int header = sizeof(struct virtio_net_hdr);

	return ioctl(fd, TUNSETVNETHDRSZ, &header) || ioctl(fd, TUNSETOFFLOAD, 0) ? -errno : 0;
}

static int known_tun(void *argument)
{
	int error, fd;

	if (!if_nametoindex(argument))
		return -ENODEV;
	fd = attach(argument, O_NONBLOCK);
	if (fd < 0)
		return fd;
	error = is_persistent(fd) ? reset(fd) : -ENODEV;
	if (!error)
		return fd;
	close(fd);
	return error;
}

napi_value create_tun(napi_env env, napi_callback_info info)
{
	char name[IFNAMSIZ] = "";
	napi_value args[2];
	int64_t netns_fd;
	int error;

	if (!take_args(env, info, 2, args) || !string_arg(env, args[0], "name", name, sizeof(name)) ||
	    !int_arg(env, args[1], "netnsFd", -1, INT_MAX, &netns_fd))
		return NULL;
	error = in_netns((int)netns_fd, new_tun, name);
	return error < 0 ? throw_errno(env, -error, "create TUN") : NULL;
}

/* Writes one record, of a packet behind its header. Returns its size; 0 when the packet is too long, or none. */
static size_t write_record(const uint8_t *frame, size_t got, uint8_t *record)
{
	size_t length = got - sizeof(struct virtio_net_hdr), padded = (2 + length + 3) & ~(size_t)3;

	if (got <= sizeof(struct virtio_net_hdr) || length > LONGEST_PACKET)
		return 0;
	memset(record, 0, padded);
	record[0] = (uint8_t)(length >> 8);
	record[1] = (uint8_t)length;
	memcpy(record + 2, frame + sizeof(struct virtio_net_hdr), length);
	return padded;
}

static size_t drain(struct reader *reader)
{
	/* One byte more: a packet that fills it is longer than any that is read. */
	uint8_t frame[sizeof(struct virtio_net_hdr) + LONGEST_PACKET + 1];
	size_t used = 0;

	for (int reads = 0; reads < READER_MOST_READS && READER_BATCH - used >= LONGEST_RECORD; reads++) {
		ssize_t got = read(reader->fd, frame, sizeof(frame));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			break; /* empty, or the device is gone */
		used += write_record(frame, (size_t)got, reader->buffer + used);
	}
	return used;
}

/* The device was deleted: nothing comes by it any more. */
static bool recovers(struct reader *reader)
{
	(void)reader;
	return false;
}

napi_value open_tun(napi_env env, napi_callback_info info)
{
	char name[IFNAMSIZ] = "";
	struct reader *reader;
	napi_value args[3];
	int64_t netns_fd;
	int fd;

	if (!take_args(env, info, 3, args) || !string_arg(env, args[0], "name", name, sizeof(name)) ||
	    !int_arg(env, args[1], "netnsFd", -1, INT_MAX, &netns_fd) || !function_arg(env, args[2], "callback"))
		return NULL;
	fd = in_netns((int)netns_fd, known_tun, name);
	if (fd < 0)
		return throw_errno(env, -fd, "attach to TUN");
	reader = calloc(1, sizeof(*reader));
	if (!reader) {
		close(fd);
		return throw_errno(env, ENOMEM, "watch TUN");
	}
	reader->fd = fd;
	reader->drain = drain;
	reader->recovers = recovers;
	return start_reader(env, reader, "watch TUN", args[2]) ? reader_handle(env, reader, &TUN_TAG) : NULL;
}

napi_value inject_packet(napi_env env, napi_callback_info info)
{
	struct virtio_net_hdr header = { 0 };
	struct reader *reader;
	napi_value args[2], result;
	uint8_t *packet;
	size_t length;
	ssize_t written;

	if (!take_args(env, info, 2, args) || !(reader = reader_arg(env, args[0], &TUN_TAG, "openTun", false)) ||
	    !bytes_arg(env, args[1], "packet", &packet, &length))
		return NULL;
	if (length == 0 || length > LONGEST_PACKET) {
		napi_throw_range_error(env, "ERR_OUT_OF_RANGE", "packet must have 1 to 512 bytes");
		return NULL;
	}
	written = writev(reader->fd, (struct iovec[]){ { &header, sizeof(header) }, { packet, length } }, 2);
	napi_create_int32(env, written < 0 ? errno : 0, &result);
	return result;
}

napi_value close_tun(napi_env env, napi_callback_info info)
{
	struct reader *reader;
	napi_value args[1];

	if (take_args(env, info, 1, args) && (reader = reader_arg(env, args[0], &TUN_TAG, "openTun", true)))
		end_reader(reader);
	return NULL;
}
