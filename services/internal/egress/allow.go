package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// allowList is the operator's list of permitted hosts and addresses that are not public.
type allowList struct {
	hosts    []allowedHost
	prefixes []allowedPrefix
}

type allowedHost struct {
	name string // in the form of normalHost
	port uint16 // 0: any
}

type allowedPrefix struct {
	prefix netip.Prefix
	port   uint16 // 0: any
}

// parseAllowList reads a list; empty entries are skipped.
func parseAllowList(text string) (allowList, error) {
	var list allowList
	var problems []string
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		if err := list.add(entry); err != nil {
			problems = append(problems, err.Error())
		}
	}
	if len(problems) > 0 {
		return allowList{}, errors.New(strings.Join(problems, "; "))
	}
	return list, nil
}

// add reads one entry. An IPv6 address needs brackets when a port follows; a range does not: fd00::/8:443.
func (l *allowList) add(entry string) error {
	host, portText, hasPort := splitEntry(entry)
	var port uint16
	if hasPort {
		var err error
		if port, err = parsePort(portText); err != nil {
			return fmt.Errorf("%q: got port %q, want 1 to 65535", entry, portText)
		}
	}
	if strings.Contains(host, "/") {
		prefix, err := netip.ParsePrefix(host)
		if err != nil {
			return fmt.Errorf("%q is not a range such as 10.0.0.0/8 or fd00::/8; a host is written without scheme and path", entry)
		}
		if masked := prefix.Masked(); masked != prefix {
			return fmt.Errorf("%q: the address has bits beyond the range; write %s, or the address without /%d", entry, masked, prefix.Bits())
		}
		l.prefixes = append(l.prefixes, allowedPrefix{plainPrefix(prefix), port})
		return nil
	}
	if address, err := netip.ParseAddr(host); err == nil {
		if address.Zone() != "" {
			return fmt.Errorf("%q: an address with a zone (%%%s) cannot be allowed", entry, address.Zone())
		}
		address = address.Unmap()
		l.prefixes = append(l.prefixes, allowedPrefix{netip.PrefixFrom(address, address.BitLen()), port})
		return nil
	}
	name := normalHost(host)
	if problem := hostProblem(name); problem != "" {
		return fmt.Errorf("%q %s; want host, host:port, address or range such as 10.0.0.0/8", entry, problem)
	}
	l.hosts = append(l.hosts, allowedHost{name, port})
	return nil
}

// splitEntry separates the port from the rest. Several colons without brackets are an IPv6 address, unless they follow
// the slash of a range.
func splitEntry(entry string) (host, port string, hasPort bool) {
	if rest, bracketed := strings.CutPrefix(entry, "["); bracketed {
		inside, after, closed := strings.Cut(rest, "]")
		if closed && after == "" {
			return inside, "", false
		}
		if port, found := strings.CutPrefix(after, ":"); closed && found {
			return inside, port, true
		}
		return entry, "", false // no host contains a bracket, so the whole entry is refused later
	}
	if network, rest, ranged := strings.Cut(entry, "/"); ranged {
		bits, port, hasPort := strings.Cut(rest, ":")
		return network + "/" + bits, port, hasPort
	}
	if strings.Count(entry, ":") == 1 {
		return strings.Cut(entry, ":")
	}
	return entry, "", false
}

// plainPrefix turns a range of IPv4-mapped addresses into an IPv4 range, which is the form of comparison.
func plainPrefix(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p
}

func parsePort(text string) (uint16, error) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err == nil && port == 0 {
		err = strconv.ErrRange
	}
	return uint16(port), err
}

// hostListed reports whether a name is on the list. name has the form of normalHost.
func (l allowList) hostListed(name string, port uint16) bool {
	for _, h := range l.hosts {
		if h.name == name && (h.port == 0 || h.port == port) {
			return true
		}
	}
	return false
}

// literalListed reports whether host is an address on the list.
func (l allowList) literalListed(host string, port uint16) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && l.addressListed(address, port)
}

func (l allowList) addressListed(address netip.Addr, port uint16) bool {
	address = plainAddress(address)
	for _, p := range l.prefixes {
		if p.prefix.Contains(address) && (p.port == 0 || p.port == port) {
			return true
		}
	}
	return false
}

// refusal returns why a resolved address and port may not be called, or "".
func (l allowList) refusal(addressPort string) string {
	ap, err := netip.ParseAddrPort(addressPort)
	if err != nil {
		return "not an address"
	}
	if l.addressListed(ap.Addr(), ap.Port()) {
		return ""
	}
	return refusalOf(ap.Addr())
}
