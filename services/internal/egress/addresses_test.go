package egress

import (
	"net/netip"
	"strings"
	"testing"
)

func TestAddressesRefused(t *testing.T) {
	for address, reason := range map[string]string{
		"0.0.0.0":                            "unspecified",
		"0.1.2.3":                            "unspecified",
		"10.0.0.1":                           "private",
		"10.255.255.255":                     "private",
		"100.64.0.1":                         "CGNAT",
		"100.100.100.200":                    "CGNAT", // Alibaba's metadata
		"100.127.255.255":                    "CGNAT",
		"127.0.0.1":                          "loopback",
		"127.255.255.254":                    "loopback",
		"168.63.129.16":                      "Azure",
		"169.254.0.1":                        "link-local",
		"169.254.169.254":                    "link-local", // the metadata of most clouds
		"172.16.0.1":                         "private",
		"172.31.255.255":                     "private",
		"192.0.0.8":                          "reserved",
		"192.0.0.192":                        "reserved", // Oracle's metadata
		"192.0.2.1":                          "documentation",
		"192.88.99.1":                        "6to4",
		"192.168.1.1":                        "private",
		"198.18.0.1":                         "benchmarking",
		"198.19.255.255":                     "benchmarking",
		"198.51.100.7":                       "documentation",
		"203.0.113.9":                        "documentation",
		"224.0.0.1":                          "multicast",
		"239.255.255.255":                    "multicast",
		"240.0.0.1":                          "reserved",
		"255.255.255.255":                    "broadcast",
		"::":                                 "unspecified",
		"::1":                                "loopback",
		"::1%lo":                             "loopback",
		"::7f00:1":                           "IPv4-compatible",
		"::8.8.8.8":                          "IPv4-compatible",
		"::ffff:127.0.0.1":                   "loopback",
		"::ffff:10.0.0.1":                    "private",
		"::ffff:169.254.169.254":             "link-local",
		"::ffff:0:127.0.0.1":                 "not public", // IPv4-translated (SIIT)
		"64:ff9b::127.0.0.1":                 "loopback, through NAT64",
		"64:ff9b::a9fe:a9fe":                 "link-local, through NAT64",
		"64:ff9b:1::8.8.8.8":                 "local NAT64",
		"64:ff9b:1:7f00:0:100::":             "local NAT64",
		"100::1":                             "not public", // discard
		"2001::7f00:1":                       "Teredo",
		"2001:0:4136:e378:8000:63bf:80ff:fe": "Teredo", // embeds 127.0.255.1, inverted
		"2001:2::1":                          "reserved",
		"2001:20::1":                         "reserved", // ORCHIDv2
		"2001:db8::1":                        "documentation",
		"2002:7f00:1::":                      "6to4",
		"2002:808:808::1":                    "6to4",
		"3fff::1":                            "documentation",
		"4000::1":                            "not public",
		"5f00::1":                            "not public", // segment routing
		"fc00::1":                            "unique local",
		"fd00:ec2::254":                      "unique local", // AWS's metadata
		"fd20:ce::254":                       "unique local", // Google's metadata
		"fe80::1":                            "link-local",
		"fe80::1%eth0":                       "link-local",
		"fec0::1":                            "not public", // site-local
		"ff02::1":                            "multicast",
	} {
		if got := refusalOf(netip.MustParseAddr(address)); !strings.Contains(got, reason) {
			t.Errorf("%s: got %q, want %q", address, got, reason)
		}
	}
}

func TestAddressesPermitted(t *testing.T) {
	for _, address := range []string{
		"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
		"168.63.129.17", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255",
		"192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8",
		"2001:200::1", "2001:4860:4860::8888", "2003::1", "2606:4700:4700::1111", "2a00:1450:4001::1",
	} {
		if got := refusalOf(netip.MustParseAddr(address)); got != "" {
			t.Errorf("%s: refused as %q", address, got)
		}
	}
}
