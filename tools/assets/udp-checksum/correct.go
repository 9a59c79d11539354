// Package udpchecksum mends UDP datagrams over IPv6 that come out of a TUN. The kernel leaves checksums to whoever reads the TUN, and the
// packages that do so write a sum of 0 as it is, where UDP has ffff for it (RFC 768): over IPv6 such a datagram has no checksum, its
// receiver drops it (RFC 8200, 8.1), and one in 65,536 would be lost.
package udpchecksum

import "encoding/binary"

const (
	ipv6HeaderSize, ipv4HeaderSize, udpHeaderSize, vxlanHeaderSize, ethernetHeaderSize = 40, 20, 8, 8, 14

	protocolUDP = 17
	// RFC 8986, 10.1: a frame. Those of Networks travel so, in SRv6 without a routing header.
	protocolEthernet = 143
	// The tunnel to owners of egress addresses (RFC 7348): its port, and its flags and number.
	egressPort   = 9996
	egressHeader = 0x08000000_00000200

	etherTypeIPv6 = 0x86dd
)

// Correct puts ffff into a UDP datagram over IPv6 whose checksum is 0 and sums to that: the packet itself, or what it carries in a frame of
// a Network or to the owner of an egress address. One that its sender gave no checksum (RFC 6935: tunnels) stays as it is, but for the one
// in 65,536 of them that has a right one now. An outer checksum stays right: in such sums 0 and ffff are the same.
func Correct(packet []byte) {
	if carried, ok := carriedBy(packet); ok {
		packet = carried
	}
	if len(packet) < ipv6HeaderSize+udpHeaderSize || packet[0]>>4 != 6 || packet[6] != protocolUDP {
		return
	}
	length := int(binary.BigEndian.Uint16(packet[ipv6HeaderSize+4:]))
	checksum := packet[ipv6HeaderSize+6 : ipv6HeaderSize+8]
	if binary.BigEndian.Uint16(checksum) != 0 || length < udpHeaderSize || ipv6HeaderSize+length > len(packet) {
		return
	}
	pseudoHeader := sum(packet[8:ipv6HeaderSize]) + uint64(length) + protocolUDP
	if fold(pseudoHeader+sum(packet[ipv6HeaderSize:ipv6HeaderSize+length])) == 0xffff {
		binary.BigEndian.PutUint16(checksum, 0xffff)
	}
}

// carriedBy is the IPv6 packet in a frame that the packet carries.
func carriedBy(packet []byte) ([]byte, bool) {
	protocol, payload, ok := payloadOf(packet)
	if !ok {
		return nil, false
	}
	if protocol == protocolUDP {
		const before = udpHeaderSize + vxlanHeaderSize
		if len(payload) < before || binary.BigEndian.Uint16(payload[2:]) != egressPort ||
			binary.BigEndian.Uint64(payload[udpHeaderSize:]) != egressHeader {
			return nil, false
		}
		payload = payload[before:]
	} else if protocol != protocolEthernet {
		return nil, false
	}
	if len(payload) < ethernetHeaderSize || binary.BigEndian.Uint16(payload[12:]) != etherTypeIPv6 {
		return nil, false
	}
	return payload[ethernetHeaderSize:], true
}

// payloadOf is what follows the header of a packet (RFC 791, 3.1; RFC 8200, 3), which is no later fragment.
func payloadOf(packet []byte) (protocol byte, payload []byte, ok bool) {
	switch {
	case len(packet) >= ipv6HeaderSize && packet[0]>>4 == 6:
		return packet[6], packet[ipv6HeaderSize:], true
	case len(packet) >= ipv4HeaderSize && packet[0]>>4 == 4:
		size := int(packet[0]&0x0f) * 4
		isLater := binary.BigEndian.Uint16(packet[6:])&0x1fff != 0
		if size < ipv4HeaderSize || size > len(packet) || isLater {
			return 0, nil, false
		}
		return packet[9], packet[size:], true
	}
	return 0, nil, false
}

// sum adds up big-endian 16-bit words, the last one filled with a zero (RFC 1071).
func sum(data []byte) uint64 {
	var total uint64
	for ; len(data) >= 2; data = data[2:] {
		total += uint64(binary.BigEndian.Uint16(data))
	}
	if len(data) == 1 {
		total += uint64(data[0]) << 8
	}
	return total
}

func fold(total uint64) uint16 {
	for total > 0xffff {
		total = total>>16 + total&0xffff
	}
	return uint16(total)
}
