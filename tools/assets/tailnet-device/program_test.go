package main

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestOfTheProgramOnlyMappingsThatTheFileHasWhollyAreTakenOut(t *testing.T) {
	smaps := strings.Join([]string{
		"00400000-009fd000 r-xp 00000000 00:1f 77 /usr/bin/tailnet-device",
		"Rss:                6000 kB",
		"Anonymous:             0 kB",
		"009fd000-01142000 r--p 005fd000 00:1f 77 /usr/bin/tailnet-device",
		"Anonymous:             4 kB", // relocated
		"01142000-011b3000 rw-p 00d42000 00:1f 77 /usr/bin/tailnet-device",
		"Anonymous:             0 kB",
		"7f0000000000-7f0000001000 r-xp 00000000 00:1f 78 /usr/lib/other",
		"Anonymous:             0 kB",
		"7f0000002000-7f0000003000 r--p 00000000 00:00 0",
		"Anonymous:             0 kB",
		"nonsense r-xp 00000000 00:1f 77 /usr/bin/tailnet-device",
		"Anonymous:             0 kB",
		"",
	}, "\n")
	want := []mapping{{0x400000, 0x9fd000}}
	if got := programMappings(strings.NewReader(smaps), "/usr/bin/tailnet-device"); !slices.Equal(got, want) {
		t.Errorf("%x", got)
	}
}

// residentFileKiB is what the process has of files in memory; those of a tmpfs count as shared memory.
func residentFileKiB(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, found := range regexp.MustCompile(`(?:RssFile|RssShmem):\s+(\d+) kB`).FindAllSubmatch(status, -1) {
		kib, _ := strconv.Atoi(string(found[1]))
		sum += kib
	}
	return sum
}

func TestTheProgramGoesOnWithoutThePagesThatItDoesNotUse(t *testing.T) {
	touched := 0
	mappings := ownMappings()
	if len(mappings) == 0 {
		t.Fatal("no mapping of the program")
	}
	memory, err := os.Open("/proc/self/mem") // reading a page by it maps it
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	for _, each := range mappings {
		page := make([]byte, 1)
		for at := each.from; at < each.to; at += 4096 {
			if _, err := memory.ReadAt(page, int64(at)); err == nil {
				touched++
			}
		}
	}
	before := residentFileKiB(t)
	unmapProgram()
	after := residentFileKiB(t)
	if before < 4*touched/2 || after > before/2 {
		t.Errorf("%d KiB of files before, %d after, %d pages touched", before, after, touched)
	}
}
