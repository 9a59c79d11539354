package main

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

func ipv4To(to string) []byte {
	packet := make([]byte, 20)
	packet[0] = 0x45
	address := netip.MustParseAddr(to).As4()
	copy(packet[16:], address[:])
	return packet
}

func ipv6To(to string) []byte {
	packet := make([]byte, 40)
	packet[0] = 0x60
	address := netip.MustParseAddr(to).As16()
	copy(packet[24:], address[:])
	return packet
}

func noting() (*contacts, *[]string) {
	var begun []string
	return &contacts{seen: map[netip.Addr]time.Time{}, begun: func(to netip.Addr) { begun = append(begun, to.String()) }}, &begun
}

func TestADestinationIsBegunWithOnceAndAgainAfterSilence(t *testing.T) {
	contacts, begun := noting()
	start := time.Unix(0, 0)
	for _, after := range []time.Duration{0, time.Second, silence, silence + time.Second, 3 * silence} {
		contacts.note(ipv4To("100.64.0.1"), start.Add(after))
	}
	contacts.note(ipv6To("fd7a:115c:a1e0::1"), start.Add(3*silence))
	if want := []string{"100.64.0.1", "100.64.0.1", "fd7a:115c:a1e0::1"}; !slices.Equal(*begun, want) {
		t.Errorf("begun with %v, want %v", *begun, want)
	}
}

func TestAPodThatSendsToManyIsNotRememberedWithoutBounds(t *testing.T) {
	contacts, _ := noting()
	for i := range 10 * mostContacts {
		contacts.note(ipv4To(netip.AddrFrom4([4]byte{100, 64, byte(i >> 8), byte(i)}).String()), time.Unix(0, 0))
		if len(contacts.seen) > mostContacts {
			t.Fatalf("%d destinations are remembered", len(contacts.seen))
		}
	}
}

func TestSilentDestinationsMakeRoomFirst(t *testing.T) {
	contacts, begun := noting()
	for i := range mostContacts {
		contacts.note(ipv4To(netip.AddrFrom4([4]byte{100, 64, 0, byte(i)}).String()), time.Unix(0, 0))
	}
	later := time.Unix(0, 0).Add(silence)
	contacts.note(ipv4To("100.64.0.7"), later)
	contacts.note(ipv4To("100.64.1.0"), later.Add(time.Second))
	if _, isKept := contacts.seen[netip.MustParseAddr("100.64.0.7")]; !isKept || len(contacts.seen) != 2 {
		t.Errorf("%d destinations are left, the talking one: %v", len(contacts.seen), isKept)
	}
	if got := (*begun)[len(*begun)-1]; got != "100.64.1.0" {
		t.Errorf("begun with %s last", got)
	}
}

func FuzzNoPacketIsTooShort(f *testing.F) {
	f.Add(ipv4To("100.64.0.1"))
	f.Add(ipv6To("fd7a::1")[:39])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, packet []byte) {
		if to, ok := destination(packet); ok != to.IsValid() || (ok && len(packet) < 20) {
			t.Errorf("%v of %x", to, packet)
		}
	})
}
