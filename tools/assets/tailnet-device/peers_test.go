package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestOfAListOfPeersOnlyAddressesCountAndNoMoreThanTheMost(t *testing.T) {
	dir := t.TempDir()
	if got := readPeers(dir); len(got) != 0 {
		t.Errorf("%v without a list", got)
	}
	text := "100.64.0.1\nno address\n\nfd7a:115c:a1e0::2\n" + strings.Repeat("100.64.0.3\n", 2*mostPeers)
	if err := os.WriteFile(peersFile(dir), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := readPeers(dir)
	if len(got) != mostPeers || got[0].String() != "100.64.0.1" || got[1].String() != "fd7a:115c:a1e0::2" {
		t.Errorf("%d peers: %v", len(got), got[:3])
	}
}

func TestAPortIsNoneOfAWireGuardInterface(t *testing.T) {
	for range 200 {
		if port, err := freePort(); err != nil || port >= firstWireGuardPort {
			t.Fatalf("port %d: %v", port, err)
		}
	}
}

func TestAPortIsKeptAndOneThatCannotBeIsChosenAnew(t *testing.T) {
	dir := t.TempDir()
	first, err := keptPort(dir)
	if err != nil || first < 1024 {
		t.Fatalf("port %d: %v", first, err)
	}
	if again, _ := keptPort(dir); again != first {
		t.Errorf("port %d, before it was %d", again, first)
	}
	for _, wrong := range []string{"", "80", "65536", "-1", "a port"} {
		if err := os.WriteFile(filepath.Join(dir, "port"), []byte(wrong), 0o600); err != nil {
			t.Fatal(err)
		}
		port, err := keptPort(dir)
		kept, _ := os.ReadFile(filepath.Join(dir, "port"))
		if err != nil || port < 1024 || string(kept) == wrong {
			t.Errorf("of %q port %d, kept as %q: %v", wrong, port, kept, err)
		}
	}
}

func TestAFileIsNeverLeftInParts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "peers")
	for _, text := range []string{"one\n", "", "another\n"} {
		if err := writeWhole(file, text); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(file); string(got) != text {
			t.Errorf("%q, want %q", got, text)
		}
	}
	entries, _ := os.ReadDir(filepath.Dir(file))
	if !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == "peers" }) || len(entries) != 1 {
		t.Errorf("%d files", len(entries))
	}
}
