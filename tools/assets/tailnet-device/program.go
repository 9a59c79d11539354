package main

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A mapping of the process's memory, from its first address to the one after its last.
type mapping struct{ from, to uintptr }

// programMappings reads smaps (proc_pid_smaps(5)) and returns the mappings of the file at path of which every page is the file's: they
// can be read from it again at any time. A mapping that may be written, or of which a page was (relocations), is none of them: the kernel has
// nowhere else what was written.
func programMappings(smaps io.Reader, path string) []mapping {
	var found []mapping
	var last *mapping
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 0 && !strings.HasSuffix(fields[0], ":") { // "from-to perms offset device inode path"
			last = mappingOf(fields, path)
		} else if last != nil && len(fields) > 1 && fields[0] == "Anonymous:" && fields[1] == "0" {
			found = append(found, *last)
		}
	}
	return found
}

func mappingOf(fields []string, path string) *mapping {
	if len(fields) != 6 || fields[5] != path || strings.Contains(fields[1], "w") {
		return nil
	}
	first, end, _ := strings.Cut(fields[0], "-")
	from, err := strconv.ParseUint(first, 16, 64)
	to, endErr := strconv.ParseUint(end, 16, 64)
	if err != nil || endErr != nil {
		return nil
	}
	return &mapping{uintptr(from), uintptr(to)}
}

// ownMappings are those of this program; none where they cannot be read.
func ownMappings() []mapping {
	path, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil
	}
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil
	}
	defer smaps.Close()
	return programMappings(smaps, path)
}

// unmapProgram takes the pages of the program's code and constants out of the process's memory. Most of them only a start or a collection
// of garbage reads; what is used comes back from the kernel's cache of the file, 16 pages at a time, without a read from the disk as long
// as there is memory. It is a saving and no need: where the kernel refuses, they stay.
func unmapProgram() {
	for _, each := range ownMappings() {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, each.from, each.to-each.from, unix.MADV_DONTNEED)
	}
}
