#!/bin/sh
# An engine for tests: does what the code says.
for target; do :; done
rules=$4
case $(head -n 1 "$target") in
*network*)
	if [ "$(grep -c : /proc/net/dev)" -gt 1 ] || wget -q -T 2 -O /dev/null "$(sed -n 2p "$target")" 2>/dev/null; then
		echo "there is a network" >&2
		exit 3
	fi
	;;
*secrets*)
	for path in $(sed -n 2p "$target"); do
		if [ -e "$path" ]; then
			echo "there is $path" >&2
			exit 3
		fi
	done
	env | grep -q PALISADE && exit 4
	if touch /usr/x "$rules" 2>/dev/null; then exit 5; fi
	;;
*sleep*) sleep 60 & sleep 60 ;;
*output*) exec yes "too much" ;;
*memory*) exec dd if=/dev/zero of=/dev/null bs=5G count=1 ;;
*crash*)
	echo "first line" >&2
	echo "Fatal: it broke" >&2
	exit 7
	;;
esac
line=$(grep -n 'eval(' "$target" | head -n 1 | cut -d: -f1)
printf '{"version":"1.0.0","results":[{"check_id":"work.%s","path":"%s","start":{"line":%s}}],"deep":"%s"}\n' \
	no-eval "$target" "${line:-0}" "$(echo "$*" | grep -c -- --pro)"
