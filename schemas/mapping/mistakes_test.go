package mapping

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// rules returns a mapping with the rules of a test.
func rules(text string) string {
	return "preset: x\nsources: {vault: required, oracle: optional}\nevents:\n" + text
}

const bought = "  - on: Bought(address indexed who, uint256 assets, uint128 shares, bytes32 code, string note)\n"

const requested = "  - on: Asked(address who, uint256 id, bytes32 code, uint256 epoch, uint256 shares)\n    emit: " +
	"requested\n    set: {key: $id, owner: $who, shares: $shares"

const noMember = "6:16: `$a.id` cannot be read: that needs a parameter `a` with a struct of named members, not " +
	"indexed, no list, and without strings, bytes and lists of any length"

// TestMistakes checks that each mistake is reported in one sentence with file, line and column, and no other with it.
func TestMistakes(t *testing.T) {
	t.Parallel()
	deposit := func(set string) string { return rules(bought + "    emit: deposit\n    set: " + set + "\n") }
	for name, test := range map[string]struct{ text, want string }{
		"empty":        {"", "1:1: the file is empty"},
		"invalid YAML": {"preset: [", "1:1: this is not YAML: did not find expected node content"},
		"two documents": {rules(bought+"    emit: none\n") + "---\npreset: y\n",
			"6:1: a file has one document, and a second one begins here"},
		"a list":   {"- preset", "1:1: a mapping must be a mapping of keys to values"},
		"an alias": {"preset: &a x\nsources: *a\n", "1:9: anchors and aliases are not part of the language"},
		"an escape sequence": {rules(bought + "    emit: \"no\\e[31mne\"\n"),
			"5:14: the character U+001B is not displayed: remove it"},
		"a name written backwards": {rules("  - on: Bought(address who\u202e, uint256 assets)\n    emit: none\n"),
			"4:27: the character U+202E is not displayed: remove it"},
		"a missing key": {"preset: x\nevents: [{on: A(), emit: none}]\n", "1:1: the key `sources` is missing"},
		"an unknown key": {"name: y\n" + rules(bought+"    emit: none\n"),
			"1:1: unknown key `name` in a mapping; the keys are preset, sources, events and nav"},
		"a repeated key": {"preset: x\n" + rules(bought+"    emit: none\n"),
			"2:1: the key `preset` appears twice in a mapping"},
		"a bad name": {strings.Replace(rules(bought+"    emit: none\n"), "preset: x", "preset: X y", 1),
			`1:9: "X y" is not a valid preset name: use lower-case letters, digits, dots and hyphens`},
		"no sources": {"preset: x\nsources: {}\nevents: [{on: A(), emit: none}]\n",
			"2:10: `sources` must name between 1 and 32 sources"},
		"a bad source": {"preset: x\nsources: {vault: perhaps}\nevents: [{on: A(), emit: none}]\n",
			"2:18: a source is `required` or `optional`, and not \"perhaps\""},
		"no rules": {"preset: x\nsources: {vault: required}\nevents: []\n",
			"3:9: `events` must have between 1 and 1000 rules"},
		"an unknown role": {rules(bought + "    source: gate\n    emit: none\n"),
			"5:13: the rule is for the source `gate`, which is not in `sources`"},
		"no vault": {"preset: x\nsources: {oracle: required}\nevents: [{on: A(), emit: none}]\n",
			"3:15: the rule is for the source `vault`, which is not in `sources`"},
		"no rule for a source": {"preset: x\nsources: {vault: required, queue: required}\nevents: [{on: A(), emit: none}]\n",
			"2:28: no rule is for the source `queue`: add `source: queue` to those of its events, or make it " +
				"`optional`"},
		"no event": {rules("  - emit: none\n"),
			"4:5: the key `on` is missing: it is the event's declaration in Solidity"},
		"no signature": {rules("  - on: Bought\n    emit: none\n"),
			"4:9: \"Bought\" is not an event signature: write Name(type indexed name, ...)"},
		"a bad type": {rules("  - on: Bought(address who, uint257 assets)\n    emit: none\n"),
			`4:29: "uint257" is not a Solidity type`},
		"a library's type": {rules("  - on: Bought(address who, Lib.Kind[] kinds)\n    emit: none\n"),
			`4:29: "Lib.Kind" is not a Solidity type: write uint8 for an enum, address for a contract, (type, type) for a struct, and for any other name the type that it stands for`},
		"anonymous": {rules("  - on: event Bought(address who) anonymous;\n    emit: none\n"),
			"4:9: the first topic of an anonymous event does not name it, so no rule can read it"},
		"a bad parameter": {rules("  - on: Bought(address who indexed)\n    emit: none\n"),
			"4:16: \"address who indexed\" is not a parameter: write `type name` or `type indexed name`"},
		"a repeated name": {rules("  - on: Bought(address a, uint256 a)\n    emit: none\n"),
			"4:27: the event has two parameters with the name `a`"},
		"four indexed": {rules("  - on: B(int8 indexed, int8 indexed, int8 indexed, int8 indexed)\n    emit: none\n"),
			"4:53: the event has more than 3 indexed parameters, and a log has no room for them"},
		"no effect": {rules(bought), "4:5: the key `emit` is missing: it is an effect, a list of effects, or none"},
		"unknown effect": {rules(bought + "    emit: buy\n"),
			"5:11: unknown effect `buy`; the effects are deposit, priced, void, sweep, settled, valuation, supply, " +
				"requested, funded, claimed, cancelled, expired and instant, or none"},
		"a sample": {rules(bought + "    emit: sample\n"),
			"5:11: `sample` is measured by ingest and has no log, so no rule emits it"},
		"none in a list": {rules(bought + "    emit: [{none: {}}]\n"), "5:13: `none` cannot be in a list"},
		"none with fields": {rules(bought + "    emit: none\n    set: {key: place}\n"),
			"6:5: `emit` is none, so nothing can be set"},
		"a list with set": {rules(bought + "    emit: [{supply: {shares: $shares}}]\n    set: {key: place}\n"),
			"6:5: `set` belongs to one effect: in a list, each effect has its fields, as in `- {priced: {side: redeem}}`"},
		"two in an item": {rules(bought + "    emit: [{supply: {shares: 1}, void: {key: 1}}]\n"),
			"5:12: an effect in a list is one name with its fields, as in `- {priced: {side: redeem}}`"},
		"a missing field": {deposit("{key: place, owner: $who, assets: $assets}"),
			"5:11: `deposit` needs `key`, `owner`, `assets` and `shares`, or `key`, `owner`, `assets` and `group`"},
		"a claim without shares": {rules(bought + "    emit: claimed\n    set: {owner: $who, assets: $assets}\n"),
			"5:11: `claimed` needs `key`, or `source_id`, or `owner`, `assets` and `shares`"},
		"an unknown field": {deposit("{key: place, owner: $who, assets: $assets, shares: $shares, colour: 1}"),
			"6:70: unknown field `colour`: `deposit` has key, owner, sender, assets, shares, asset, group, attribution and " +
				"partner"},
		"two partners": {deposit("{key: place, owner: $who, assets: $assets, shares: $shares, partner: 1, " +
			"attribution: $code}"), "5:11: `deposit` cannot have `attribution` and `partner` at the same time"},
		"two partner effects": {rules(bought +
			"    emit: [{deposit: {key: place, owner: $who, assets: $assets, shares: $shares, partner: 1}}, {requested: " +
			"{key: place, owner: $who, shares: $shares, attribution: $code}}]\n"),
			"5:97: only one effect of a rule can name a partner: a log is one event for partners"},
		"a parameter": {deposit("{key: place, owner: $who, assets: $asset, shares: $shares}"),
			"6:44: unknown parameter `$asset`: Bought has $who, $assets, $shares, $code and $note"},
		"inside": {deposit(`{key: place, owner: $who, assets: "add($assets, $fee)", shares: $shares}`),
			"6:58: unknown parameter `$fee`: Bought has $who, $assets, $shares, $code and $note"},
		"a long type": {deposit("{key: place, owner: $who, assets: $assets, shares: $note}"),
			"6:61: `$note` is of the type string, and only a value of one word can be used"},
		"a wrong type": {deposit("{key: place, owner: $assets, assets: $assets, shares: $shares}"),
			"6:30: `owner` must be an address, and \"$assets\" is of the type uint256"},
		"no number": {deposit("{key: $code, owner: $who, assets: $assets, shares: $shares}"),
			"6:16: `key` must be a number of at most 64 bits, and \"$code\" is of the type bytes32"},
		"a large literal": {deposit("{key: 18446744073709551616, owner: $who, assets: $assets, shares: $shares}"),
			"6:16: `key` must be a number of at most 64 bits, and \"18446744073709551616\" is a number of 65 bits, with room " +
				"for 64"},
		"a fraction": {deposit("{key: 1.5, owner: $who, assets: $assets, shares: $shares}"),
			`6:16: "1.5" is not a whole number; fractions and exponents are not supported`},
		"no expression": {deposit("{key: here, owner: $who, assets: $assets, shares: $shares}"),
			`6:16: "here" is not an expression: write $parameter, $block, $time, place, a number, or add, sub or mulDiv`},
		"no function": {deposit(`{key: "pow(2, 3)", owner: $who, assets: $assets, shares: $shares}`),
			"6:16: unknown function `pow`: there are add, sub and mulDiv"},
		"arguments": {deposit(`{key: "add(2, 3, 4)", owner: $who, assets: $assets, shares: $shares}`),
			"6:16: `add` takes 2 arguments and has 3"},
		"an address added": {deposit(`{key: "add(2, $who)", owner: $who, assets: $assets, shares: $shares}`),
			"6:24: `add` calculates with numbers, and \"$who\" is of the type address"},
		"by zero": {deposit(`{key: "mulDiv(2, 3, 0)", owner: $who, assets: $assets, shares: $shares}`),
			`6:16: "mulDiv(2, 3, 0)" divides by zero`},
		"overflow": {deposit(`{key: place, owner: $who, assets: "add($assets, 57896044618658097711785492504343953926634992332820282019728792003956564819968)", shares: $shares}`),
			`6:44: "add($assets, 57896044618658097711785492504343953926634992332820282019728792003956564819968)" can overflow: its result can have 257 bits, and 255 are possible`},
		"no quotes": {deposit("{key: place, owner: $who, assets: add($assets, $shares), shares: $shares}"), ""},
		"a condition": {rules(bought + "    when: {whom: 0x00}\n    emit: none\n"),
			"5:12: unknown parameter `$whom`: Bought has $who, $assets, $shares, $code and $note"},
		"another type": {rules(bought + "    when: {who: 5}\n    emit: none\n"),
			"5:17: `who` is compared with a value of its own type: \"5\" is not an address: write 0x and 40 digits"},
		"another number": {rules(bought + "    when: {shares: 0x0000000000000000000000000000000000000000}\n    emit: none\n"),
			"5:20: `shares` is compared with a value of its own type: \"0x0000000000000000000000000000000000000000\" is not a " +
				"value of type uint128"},
		"computed condition": {rules(bought + "    when: {assets: \"add(1, 2)\"}\n    emit: none\n"),
			"5:20: `assets` can only be compared with a parameter or a literal"},
		"two rules": {rules(bought + "    emit: none\n" + bought + "    emit: none\n"),
			"6:9: the rule of line 4 claims every log that this rule could"},
		"two conditions": {rules(bought + "    when: {assets: 0}\n    emit: none\n" + bought +
			"    when: {shares: 1, assets: 0x0}\n    emit: none\n"),
			"7:9: the rule of line 4 claims every log that this rule could"},
		"price without group": {rules(bought +
			"    emit: priced\n    set: {side: redeem, to_group: 1, assets: $assets, shares: $shares}\n"),
			"5:11: `priced` is about a `group`, the groups from `group` to `to_group`, or everything `up_to_group`"},
		"groups of two logs": {rules(bought +
			"    emit: priced\n    set: {side: redeem, group: $assets, assets: $assets, shares: $shares}\n    with: {on: " +
			"'C(uint256 k, uint256 g)', match: {g: $assets}, set: {up_to_group: $k}}\n"),
			"5:11: `priced` is about a `group`, the groups from `group` to `to_group`, or everything `up_to_group`"},
		"a funding of an owner": {rules(requested + ", group: $epoch}\n" + bought +
			"    emit: funded\n    set: {up_to_group: 1, owner: $who, assets: $assets}\n"),
			"8:11: `funded` with `up_to_group` applies to the requests of all owners, so it cannot have an `owner`"},
		"a funding of totals": {rules(requested + "}\n" + bought + "    emit: [{funded: {up_to_key: 1, assets: $assets, " +
			"shares: $shares}}]\n"), "8:13: `funded` with `up_to_key` applies to many requests, so it cannot have `assets` and " +
			"`shares`: emit totals as `priced` before it, or as `settled`"},
		"a price after the funding": {rules(requested + ", group: $epoch}\n" + bought +
			"    emit: [{funded: {up_to_group: 1}}, {priced: {side: redeem, group: 1, assets: $assets, shares: $shares}}]\n"),
			"8:41: `priced` comes before `funded`: a request is paid by the price that it has when it is funded"},
		"a claim of a place": {rules(strings.Replace(requested, "key: $id", "key: place", 1) + ", source_id: $code}\n" +
			bought + "    emit: claimed\n    set: {key: $assets, assets: $assets}\n"), "7:9: `claimed` names a `key` of its event, and each " +
			"`requested` has the key `place`, which no other log contains"},
		"a funding up to a place": {rules(strings.Replace(requested, "key: $id", "key: place", 1) + "}\n" + bought +
			"    emit: [{funded: {up_to_key: $assets}}, {claimed: {owner: $who, assets: 1, shares: 1}}]\n"), "7:9: `funded` names a " +
			"`key` of its event, and each `requested` has the key `place`, which no other log contains"},
		"a funding up to a number before a place": {rules(strings.Replace(requested, "key: $id", "key: place", 1) + "}\n" + bought +
			"    emit: [{funded: {up_to_key: \"sub($assets, 1)\"}}, {claimed: {owner: $who, assets: 1, shares: 1}}]\n"),
			"7:9: `funded` names a `key` of its event, and each `requested` has the key `place`, which no other log contains"},
		"a claim of a place by a companion": {rules(strings.Replace(requested, "key: $id", "key: place", 1) + ", source_id: " +
			"$code}\n" + bought + "    emit: claimed\n    set: {assets: $assets}\n    with: {on: 'C(uint256 k, uint256 g)', " +
			"match: {g: $assets}, set: {key: \"mulDiv($k, 1, 1)\"}}\n"), "7:9: `claimed` names a `key` of its event, and each " +
			"`requested` has the key `place`, which no other log contains"},
		"a sweep up to a place": {rules(bought + "    emit: [{deposit: {key: place, owner: $who, assets: $assets, shares: " +
			"$shares}}, {sweep: {up_to_key: $assets, assets: 1}}]\n"), "4:9: `sweep` names a `key` of its event, and each " +
			"`deposit` has the key `place`, which no other log contains"},
		"a claim of no request": {rules(bought + "    emit: [{claimed: {owner: $who, assets: 1, shares: 1}}]\n"), "4:9: " +
			"`claimed` is about a request, and no rule emits `requested`: a payment without a request is `instant`"},
		"a request without end": {rules(requested + "}\n"), "4:9: no rule emits `claimed`, so a request would stay in the queue " +
			"forever: emit `instant` if no later log names it, or its owner and shares"},
		"a void place": {rules(bought + "    emit: [{deposit: {key: place, owner: $who, assets: $assets, group: 1}}, " +
			"{priced: {side: deposit, group: 1, assets: 1, shares: 1}}, {void: {key: $assets}}]\n"), "4:9: `void` names a " +
			"`key` of its event, and each `deposit` has the key `place`, which no other log contains"},
		"no supply": {rules(bought + "    emit: valuation\n    set: {total_assets: $assets}\n"), "4:9: NAV would be 0: the " +
			"`valuation` has neither `nav` nor `total_supply`, and no rule emits `supply`"},
		"no group": {rules(requested + "}\n" + bought + "    emit: funded\n    set: {up_to_group: 1}\n"),
			"7:9: `funded` names a group, and no rule emits a `requested` with a `group`"},
		"no deposits group": {rules(bought + "    emit: void\n    set: {owner: $who, group: 1}\n"),
			"4:9: `void` names a group, and no rule emits a `deposit` with a `group`"},
		"no price": {rules(bought +
			"    emit: deposit\n    set: {key: place, owner: $who, assets: $assets, group: 1}\n"),
			"4:9: the deposit has no shares, and no rule emits `priced` with `side: deposit`"},
		"a swept group": {rules(bought +
			"    emit: [{deposit: {key: place, owner: $who, assets: $assets, group: 1}}, {priced: {side: deposit, group: 1, " +
			"assets: 1, shares: 1}}, {sweep: {up_to_key: 1, assets: 1}}]\n"),
			"4:9: deposits without shares cannot be swept, and line 4 emits `sweep`"},
		"no source id": {rules(requested + "}\n" + bought + "    emit: cancelled\n    set: {source_id: $code}\n"),
			"7:9: `cancelled` names a `source_id`, and no rule emits a `requested` with one"},
		"two claims": {rules(requested + "}\n" + bought +
			"    emit: [{claimed: {key: 1, owner: $who, assets: 1}}, {claimed: {owner: $who, assets: 1, shares: 1}}]\n"),
			"7:9: claims name a request in line 7 and only an owner here: a mapping has one of the two"},
		"a key and a group": {rules(requested + ", group: $epoch}\n" + bought +
			"    emit: funded\n    set: {up_to_key: 1}\n"), "4:9: requests are funded up to a key, so none can have a `group`"},
		"funded shares": {rules(requested + ", group: $epoch}\n" + bought +
			"    emit: [{claimed: {owner: $who, assets: 1, shares: 1}}, {funded: {up_to_group: 1}}, {cancelled: {owner: " +
			"$who, shares: 1}}]\n"),
			"7:9: `cancelled` names an owner and shares, which would be taken from funded requests only (line 7 emits " +
				"`funded`): name the request or its group"},
		"a refund": {rules(bought +
			"    emit: [{deposit: {key: 1, owner: $who, assets: $assets, shares: $shares}}, {void: {key: 1}}]\n"),
			"4:9: `void` is about a deposit that waits for its price, and each `deposit` of the rules has `shares`"},
		"no owner's claims": {rules(requested + "}\n" + bought + "    emit: [{cancelled: {owner: $who, shares: 1}}]\n"),
			"7:9: `cancelled` names an owner and shares, and no rule emits a `claimed` that names only an owner"},
		"no estimate": {rules(requested + "}\n" + bought + "    emit: [{claimed: {key: 1, owner: $who}}]\n"),
			"7:9: a claim without `assets` pays what its request was funded for, or the `estimate`, and the rules give the " +
				"request of line 4 neither"},
		"out of order": {rules(requested + "}\n" + bought +
			"    emit: [{claimed: {owner: $who, assets: 1, shares: 1}}, {expired: {key: 1}}]\n"),
			"7:9: requests that are claimed by their owner and never funded cannot be expired: whose turn it is would be " +
				"unknown"},
		"out of time": {rules(requested + ", expires: $epoch}\n" + bought + "    emit: [{claimed: {owner: $who, assets: 1, " +
			"shares: 1}}]\n"), "4:9: requests that are claimed by their owner and never funded cannot have `expires`: whose " +
			"turn it is would be unknown"},
		"a member of a struct with a string": {rules("  - on: A((uint256 id, string note) a)\n    emit: void\n    set: " +
			"{key: $a.id}\n"), noMember},
		"a member of a list": {rules("  - on: A((uint256 id)[1] a)\n    emit: void\n    set: {key: $a.id}\n"), noMember},
		"a member of a topic": {rules("  - on: A((uint256 id) indexed a)\n    emit: void\n    set: {key: $a.id}\n"),
			noMember},
		"a member of no parameter": {rules("  - on: A(uint256 b)\n    emit: void\n    set: {key: $a.id}\n"), noMember},
		"another member": {rules("  - on: A((uint256 id, uint8) a)\n    emit: void\n    set: {key: $a.x}\n"),
			"6:16: unknown parameter `$a.x`: A has $a and $a.id"},
		"a struct": {rules("  - on: A((uint256 id) a)\n    emit: void\n    set: {key: $a}\n"),
			"6:16: `$a` is of the type (uint256), and only a value of one word can be used"},
		"two members": {rules("  - on: A((uint256 id, uint8 id) a)\n    emit: void\n    set: {key: $a.id}\n"),
			"6:16: the struct of `$a.id` has two members with this name"},
		"a reserved name": {rules("  - on: A(uint256 time)\n    emit: supply\n    set: {shares: $time}\n"),
			"6:19: `$time` can be the block's or the event's: give the parameter another name in `on`"},
		"an event of the stream": {rules("  - on: unit(uint256 shares)\n    emit: supply\n    set: {shares: $shares}\n"),
			"4:9: an event with the name `unit` can only have `emit: none`: the API uses the names Unknown, error, open, " +
				"retracted and unit itself"},
		"no companion": {rules(bought +
			"    emit: void\n    set: {key: place}\n    with: {on: C(uint256 key), set: {key: $key}}\n"),
			"7:11: the key `match` is missing in `with`"},
		"its own companion": {rules(bought +
			"    emit: void\n    set: {key: place}\n    with: {on: 'Bought(address indexed a, uint256 b, uint128 c, bytes32 " +
			"d, string e)', match: {a: $who}, set: {owner: $a}}\n"),
			"7:16: a companion is a log of another event or source, and this is the rule's own"},
		"set by both": {rules(bought +
			"    emit: void\n    set: {key: place}\n    with: {on: C(uint256 k), match: {k: $assets}, set: {key: $k}}\n"),
			"7:56: `key` is set by the rule and by its companion"},
		"no valuation": {rules(bought+"    emit: none\n") + "nav: {from: valuation}\n",
			"6:13: `nav` comes from valuations, and no rule emits one"},
		"nav from a sample": {rules(bought+"    emit: none\n") + "nav: {from: sample}\n",
			"6:13: `nav` can only come `from: valuation`, and not from \"sample\""},
		"no nav": {rules(bought+"    emit: none\n") + "nav: {}\n",
			"6:6: `nav` is `{from: valuation}` or `{sample: convertToAssets, every: 300}`"},
		"two navs": {rules(bought+"    emit: [{valuation: {nav: $assets}}]\n") +
			"nav: {from: valuation, sample: convertToAssets, every: 5}\n",
			"6:24: `nav` comes `from: valuation` or is sampled, and not both"},
		"another function": {rules(bought+"    emit: none\n") + "nav: {sample: pricePerShare, every: 5}\n",
			"6:15: `sample` is the function convertToAssets of the source `vault`, and not \"pricePerShare\""},
		"no interval": {rules(bought+"    emit: none\n") + "nav: {sample: convertToAssets}\n",
			"6:7: the key `every` is missing in `nav`: it is the number of blocks between two samples"},
		"never": {rules(bought+"    emit: none\n") + "nav: {sample: convertToAssets, every: 0}\n",
			"6:39: `every` is a number of blocks from 1 to 4294967295, and not \"0\""},
		"interval, no sample": {rules(bought+"    emit: none\n") + "nav: {every: 5}\n",
			"6:7: `every` says how often NAV is sampled, and `sample` is missing"},
		"no sampled vault": {"preset: x\nsources: {oracle: required}\nevents: [{on: A(), source: oracle, emit: " +
			"none}]\nnav: {sample: convertToAssets, every: 5}\n",
			"4:7: `sample` calls the source `vault`, which is not in `sources`"},
		"no such preset": {"sources: {}\npresets: [{preset: y}]\n",
			`2:20: unknown preset "y": the presets are ` + series(Presets(), "and")},
		"overlapping": {"sources: {vault: 0x0000000000000000000000000000000000000001}\npresets:\n  - {preset: " +
			"reference, to: 10}\n  - {preset: reference, from: 10}\n",
			"4:5: the blocks of `reference` overlap those of `reference`"},
		"backwards": {"sources: {vault: 0x0000000000000000000000000000000000000001}\npresets:\n  - {preset: " +
			"reference, from: 10, to: 9}\n", "3:5: the blocks 10 to 9 are an empty range"},
		"no block": {"sources: {vault: 0x0000000000000000000000000000000000000001}\npresets:\n  - {preset: " +
			"reference, from: -1}\n", "3:31: `from` is the number of a block, and not \"-1\""},
		"no role": {"sources: {vault: 0x0000000000000000000000000000000000000001, gate: " +
			"0x0000000000000000000000000000000000000002}\npresets: [{preset: reference}]\n",
			"1:62: no preset of the vault has a source `gate`"},
		"no address": {"sources: {vault: 0x01}\npresets: [{preset: reference}]\n", `1:18: "0x01" is not an address`},
		"a source missing": {"sources: {}\npresets: [{preset: reference}]\n",
			"1:10: the preset `reference` needs a source `vault`"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := ParseFile("f.yaml", []byte(test.text), Preset)
			if name == "no quotes" {
				if err == nil || !strings.Contains(err.Error(), "must be in quotes") {
					t.Errorf("the mistakes are\n%v", err)
				}
				return
			}
			if err == nil || err.Error() != "f.yaml:"+test.want {
				t.Errorf("the mistakes are\n%v, want\nf.yaml:%s", err, test.want)
			}
		})
	}
}

// TestReservedNames checks that no event with an effect has a name that the stream of the API or a browser uses for
// other events, or that stands for logs without a rule. Without an effect, such an event is not named.
func TestReservedNames(t *testing.T) {
	t.Parallel()
	for name, reserved := range map[string]bool{"unit": true, "retracted": true, "error": true, "open": true,
		"Unknown": true, "Unit": false, "message": false} {
		on := "  - on: " + name + "(uint256 shares)\n    emit: "
		if _, err := Parse("f.yaml", []byte(rules(on+"supply\n    set: {shares: $shares}\n"))); (err != nil) != reserved {
			t.Errorf("%s with an effect: %v", name, err)
		}
		if _, err := Parse("f.yaml", []byte(rules(on+"none\n"))); err != nil {
			t.Errorf("%s without an effect: %v", name, err)
		}
	}
}

// TestEveryMistake checks that all mistakes of a file are reported at once, in the order of the file.
func TestEveryMistake(t *testing.T) {
	t.Parallel()
	_, err := Parse("f.yaml",
		[]byte(rules(bought+"    emit: buy\n"+"  - on: B(uint7 x)\n    emit: none\n")+"nav: {to: 5}\n"))
	var mistakes Mistakes
	if !errors.As(err, &mistakes) || len(mistakes) != 3 {
		t.Fatalf("the mistakes are\n%v", err)
	}
	for i, line := range []int{5, 6, 8} {
		if mistakes[i].Line != line || mistakes[i].Column == 0 || mistakes[i].File != "f.yaml" {
			t.Errorf("mistake %d is %v, want line %d", i, mistakes[i], line)
		}
	}
}

// TestManyMistakes checks that the mistakes of a file are few and short, although each of them could repeat the names
// of all parameters.
func TestManyMistakes(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("  - on: E(")
	for i := range 63 {
		fmt.Fprintf(&text, "uint8 %s%d,", strings.Repeat("a", 900), i)
	}
	text.WriteString("uint8 z)\n    emit: none\n    when: {")
	for i := range 5000 {
		fmt.Fprintf(&text, "%x: 1,", 1<<20+i)
	}
	text.WriteString("z: 1}\n")
	_, err := Parse("f.yaml", []byte(rules(text.String())))
	var mistakes Mistakes
	if !errors.As(err, &mistakes) || len(mistakes) != 101 || len(err.Error()) > 101*600 {
		t.Fatalf("%d mistakes, %d bytes", len(mistakes), len(err.Error()))
	}
	if last := mistakes[100].Text; last != "there are more than 100 mistakes, and the others are not shown" {
		t.Errorf("the last mistake is %q", last)
	}
	if first := mistakes[0].Text; !strings.HasPrefix(first, "unknown parameter `$100000`: E has $aaa") ||
		!strings.HasSuffix(first, "a…") {
		t.Errorf("the first mistake is %q", first)
	}
}

// TestSampling checks that a mapping names the function that returns NAV, and how often it is called; without it NAV is
// not sampled.
func TestSampling(t *testing.T) {
	t.Parallel()
	m, err := Parse("f.yaml", []byte(rules(bought+"    emit: none\n")+"nav: {sample: convertToAssets, every: 300}\n"))
	if err != nil || m.SampleEvery != 300 {
		t.Errorf("NAV is sampled every %d blocks, %v", m.SampleEvery, err)
	}
	if m, err := Preset("reference"); err != nil || m.SampleEvery != 0 {
		t.Errorf("NAV of the reference contracts is sampled every %d blocks, %v", m.SampleEvery, err)
	}
}
