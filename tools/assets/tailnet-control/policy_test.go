// Packet filters by tags, and what is refused in the file.

package main

import (
	"encoding/json"
	"net/netip"
	"testing"

	"tailscale.com/tailcfg"
)

func tagged(address string, tags ...string) *node {
	return &node{Node: tailcfg.Node{Tags: tags, Addresses: []netip.Prefix{netip.MustParsePrefix(address + "/32")}}}
}

func TestFilterByTags(t *testing.T) {
	parsed, err := parsePolicy([]byte(`[{"from":["tag:a"],"to":["tag:b"],"ports":"53,8000-8100"},{"from":["*"],"to":["tag:c"],"ports":"*"}]`))
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := tagged("100.64.0.1", "tag:a"), tagged("100.64.0.2", "tag:b"), tagged("100.64.0.3", "tag:c")
	all := []*node{a, b, c}
	for _, row := range []struct {
		self *node
		want string
	}{
		{a, `[]`},
		{b, `[{"SrcIPs":["100.64.0.1"],"DstPorts":[{"IP":"100.64.0.2","Ports":{"First":53,"Last":53}},{"IP":"100.64.0.2","Ports":{"First":8000,"Last":8100}}]}]`},
		{c, `[{"SrcIPs":["*"],"DstPorts":[{"IP":"100.64.0.3","Ports":{"First":0,"Last":65535}}]}]`},
	} {
		got, _ := json.Marshal(parsed.filterFor(row.self, all))
		if string(got) != row.want {
			t.Errorf("filter of %v:\n%s, want\n%s", row.self.Tags, got, row.want)
		}
	}
	if filter := parsed.filterFor(b, []*node{b, c}); len(filter) != 0 {
		t.Errorf("filter %+v without a node that may send", filter)
	}
}

func TestWithoutPolicyEverythingIsAllowed(t *testing.T) {
	var none *policy
	if filter := none.filterFor(tagged("100.64.0.1"), nil); len(filter) != 1 || filter[0].SrcIPs[0] != "*" {
		t.Fatalf("filter %+v", filter)
	}
}

func TestPolicyErrorsNameTheField(t *testing.T) {
	for text, want := range map[string]string{
		`[{"from":[],"to":["*"],"ports":"*"}]`:        `[0].from [] must name a tag or "*"`,
		`[{"from":["*"],"to":["b"],"ports":"*"}]`:     `[0].to "b" must be "*" or begin with "tag:"`,
		`[{"from":["*"],"to":["*"],"ports":"9-1"}]`:   `[0].ports "9-1" must be "*" or a list of ports and ranges such as "53,8000-8100"`,
		`[{"from":["*"],"to":["*"],"ports":"70000"}]`: `[0].ports "70000" must be "*" or a list of ports and ranges such as "53,8000-8100"`,
		`[{"form":["*"]}]`:                            `json: unknown field "form"`,
	} {
		if _, err := parsePolicy([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
}
