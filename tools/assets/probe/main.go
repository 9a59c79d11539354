// Command probe runs in the lab's pods: it answers (serve) and asks (matrix, stream, flow, fetch), and prints what it
// saw as JSON. One static binary with no dependency, so that its image is one file.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

const usage = `usage: probe serve
       probe matrix MTU < targets.json      every check against every target
       probe stream HOST:PORT MIB           one checksummed stream
       probe flow HOST:PORT PER_SECOND SECONDS
                                            numbered datagrams, echoed: what was lost and when
       probe flow HOST:PORT PER_SECOND MAX_SECONDS until-eof
                                            the same, until the input ends
       probe inject packets | frames DEVICE < hex
                                            sends what no kernel would send by itself, one a line
       probe fetch URL | probe resolve NAME
       probe peer PORT                      answers the next two until it is killed
       probe roundtrip HOST:PORT COUNT      echoes of 64 bytes over UDP: median and 99th percentile
       probe bulk HOST:PORT MILLISECONDS    one TCP connection, as fast as it goes
PROBE_CHECK_TIME: how long an answer may take, as in "10s"; 2s unless it is set`

func main() {
	commands := map[string]func([]string) error{
		"serve": serve, "matrix": matrix, "stream": stream, "flow": flow, "fetch": fetch, "resolve": resolve,
		"inject": inject, "peer": peer, "roundtrip": roundtrip, "bulk": bulk,
	}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "probe "+os.Args[1]+":", err)
		os.Exit(1)
	}
}

func printJSON(value any) error { return json.NewEncoder(os.Stdout).Encode(value) }
