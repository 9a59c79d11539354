// Access control by tags: rules from a file, and the packet filter of each node.

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"tailscale.com/tailcfg"
)

const anyTag = "*"

// rule lets nodes with one of the tags in From reach those with one of the tags in To, at Ports: "*", or a list such as
// "53,8000-8100".
type rule struct {
	From  []string `json:"from"`
	To    []string `json:"to"`
	Ports string   `json:"ports"`

	ports []tailcfg.PortRange
}

// policy is what an access control list of a tailnet comes to, as far as tests need it: what no rule allows is dropped.
type policy struct{ rules []rule }

func readPolicy(path string) (*policy, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("-acl: %w", err)
	}
	parsed, err := parsePolicy(text)
	if err != nil {
		return nil, fmt.Errorf("-acl %s: %w", path, err)
	}
	return parsed, nil
}

func parsePolicy(text []byte) (*policy, error) {
	parsed := &policy{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&parsed.rules); err != nil {
		return nil, err
	}
	for index := range parsed.rules {
		if err := parsed.rules[index].check(); err != nil {
			return nil, fmt.Errorf("[%d].%w", index, err)
		}
	}
	return parsed, nil
}

func (r *rule) check() (err error) {
	if err = checkTags("from", r.From); err == nil {
		err = checkTags("to", r.To)
	}
	if err == nil {
		r.ports, err = parsePorts(r.Ports)
	}
	return err
}

func checkTags(field string, tags []string) error {
	if len(tags) == 0 {
		return fmt.Errorf("%s %q must name a tag or \"*\"", field, tags)
	}
	named := slices.DeleteFunc(slices.Clone(tags), func(tag string) bool { return tag == anyTag })
	if wrong, found := wrongTag(named); found {
		return fmt.Errorf("%s %q must be \"*\" or begin with \"tag:\"", field, wrong)
	}
	return nil
}

func parsePorts(text string) ([]tailcfg.PortRange, error) {
	if text == "*" {
		return []tailcfg.PortRange{tailcfg.PortRangeAny}, nil
	}
	var ranges []tailcfg.PortRange
	for part := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			high = low
		}
		first, err1 := strconv.ParseUint(low, 10, 16)
		last, err2 := strconv.ParseUint(high, 10, 16)
		if err1 != nil || err2 != nil || first > last {
			return nil, fmt.Errorf("ports %q must be \"*\" or a list of ports and ranges such as \"53,8000-8100\"", text)
		}
		ranges = append(ranges, tailcfg.PortRange{First: uint16(first), Last: uint16(last)})
	}
	return ranges, nil
}

// filterFor is the packet filter of one node: a rule of the policy that has one of its tags in "to" becomes a rule from the
// addresses of the nodes that have a tag in "from". The result is never nil, so that a client does not keep its former one.
func (p *policy) filterFor(self *node, nodes []*node) []tailcfg.FilterRule {
	if p == nil {
		return tailcfg.FilterAllowAll
	}
	filter := []tailcfg.FilterRule{}
	for _, r := range p.rules {
		if !matches(r.To, self.Tags) {
			continue
		}
		if sources := addressesOf(r.From, nodes); len(sources) > 0 {
			filter = append(filter, tailcfg.FilterRule{SrcIPs: sources, DstPorts: destinations(self.Addresses, r.ports)})
		}
	}
	return filter
}

func matches(wanted, tags []string) bool {
	return slices.ContainsFunc(wanted, func(tag string) bool { return tag == anyTag || slices.Contains(tags, tag) })
}

// addressesOf leaves "*" to the client, which then also accepts what comes from routes of other nodes.
func addressesOf(from []string, nodes []*node) []string {
	if slices.Contains(from, anyTag) {
		return []string{"*"}
	}
	var sources []string
	for _, n := range nodes {
		if matches(from, n.Tags) {
			for _, address := range n.Addresses {
				sources = append(sources, address.Addr().String())
			}
		}
	}
	return sources
}

func destinations(addresses []netip.Prefix, ports []tailcfg.PortRange) []tailcfg.NetPortRange {
	var all []tailcfg.NetPortRange
	for _, address := range addresses {
		for _, port := range ports {
			all = append(all, tailcfg.NetPortRange{IP: address.Addr().String(), Ports: port})
		}
	}
	return all
}
