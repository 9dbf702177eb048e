"""A server that cheats, strangers, replays and altered messages: refused, and nothing is summed wrongly."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from secure_samples import OPEN, Game, directory, key_of, make_plan, make_values, member, names

from fedrec.errors import BadInput
from fedrec.secure.aggregator import Aggregator
from fedrec.secure.failures import Refusal, SecureFailure, TooFew, WrongSum
from fedrec.secure.identity import SIGNATURE_BYTES, Directory, new_key, public_bytes
from fedrec.secure.layout import Field, Layout
from fedrec.secure.messages import ENTRY_BYTES, HEADER, Advertisement, Kind, Unmasking, bits_of, sign
from fedrec.secure.plan import Plan
from fedrec.secure.policy import Policy
from fedrec.secure.randomness import Stream
from fedrec.secure.rules import neighbourhood


def own_keys(plan: Plan, place: int, name: str) -> bytes:
    """Keys of the server's own making, signed with ``name``'s long-term key."""
    stream = Stream.named(1, "server")
    public = [X25519PrivateKey.from_private_bytes(stream.bytes(32)).public_key().public_bytes_raw() for _ in range(2)]
    return sign(plan, Kind.ADVERTISE, place, Advertisement(*public).to_bytes(), key_of(name))


def test_keys_that_the_server_puts_in_place_are_refused() -> None:
    plan = make_plan(6, 5, 4)

    def relay(kind: Kind, place: int, content: bytes) -> bytes:
        if kind is Kind.SHARE and place == 0:
            size = HEADER.size + Advertisement.SIZE + SIGNATURE_BYTES
            return own_keys(plan, 1, "the server") + content[size:]
        return content

    game = Game(plan, make_values(plan), relay=relay).until(Kind.ADVERTISE)
    with pytest.raises(Refusal, match="not that of 'member 001'"):
        game.step(Kind.SHARE)


def test_a_member_that_is_not_in_the_directory_is_refused() -> None:
    plan = make_plan(6, 5, 4)
    stranger = member("member 000", 5)  # knows five of the six
    with pytest.raises(Refusal, match="'member 005' is not in the directory"):
        stranger.join(plan)


@pytest.mark.parametrize("other", [{"run": "other"}, {"round": 2}, {"cohort": 1}, {"attempt": 1}, {"length": 6}])
@pytest.mark.parametrize("kind", list(Kind))
def test_messages_of_another_sum_are_refused(kind: Kind, other: dict[str, Any]) -> None:
    plan, foreign = make_plan(5, 4, 3), make_plan(5, 4, 3, **other)
    game, elsewhere = Game(plan, make_values(plan)), Game(foreign, make_values(foreign))
    for step in Kind:
        if step < kind:
            game.step(step)
        if step <= kind:
            elsewhere.step(step)
    replayed = next(message for step, _, message in elsewhere.transcript.sent if step is kind)
    with pytest.raises(Refusal):
        game.server.receive(replayed)
    # and what the server passes on from there is refused by members
    if kind in (Kind.SHARE, Kind.INPUT, Kind.UNMASK):
        content = next(content for step, place, content in elsewhere.transcript.received if (step, place) == (kind, 0))
        with pytest.raises(Refusal):
            game.ask(kind, 0, content)


@given(st.data())
@settings(max_examples=60)
def test_an_altered_message_is_refused_by_the_server(data: st.DataObject) -> None:
    plan = make_plan(5, 4, 3)
    kind = data.draw(st.sampled_from(list(Kind)))
    game = Game(plan, make_values(plan))
    for step in Kind:
        if step < kind:
            game.step(step)
    message = bytearray(game.ask(kind, 0, game.inbox[plan.members[0]]))
    position = data.draw(st.integers(0, len(message) - 1))
    message[position] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(Refusal):
        game.server.receive(bytes(message))
    with pytest.raises(Refusal):
        game.server.receive(bytes(message[: data.draw(st.integers(0, len(message) - 1))]))


@given(st.data())
@settings(max_examples=60)
def test_altered_relays_end_without_a_wrong_sum(data: st.DataObject) -> None:
    """One bit of what the server passes on differs: the member refuses, or the right sum comes out without it."""
    plan = make_plan(6, 5, 3, least_survivors=4)
    target = data.draw(st.sampled_from([Kind.SHARE, Kind.INPUT, Kind.CONFIRM, Kind.UNMASK]))

    def relay(kind: Kind, place: int, content: bytes) -> bytes:
        if (kind, place) != (target, 2):
            return content
        changed = bytearray(content)
        changed[data.draw(st.integers(0, len(changed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        return bytes(changed)

    game = Game(plan, make_values(plan), relay=relay)
    with pytest.raises(SecureFailure):
        game.play()
    with pytest.raises(Refusal, match="out of order or again"):  # the refusal has ended its part
        game.ask(target, 2, game.inbox[plan.members[2]])


@pytest.mark.parametrize("kind", list(Kind))
def test_every_step_is_taken_once(kind: Kind) -> None:
    plan = make_plan(5, 4, 3)
    game = Game(plan, make_values(plan))
    for step in Kind:
        if step < kind:
            game.step(step)
    content = game.inbox[plan.members[0]]
    message = game.ask(kind, 0, content)
    game.server.receive(message)
    with pytest.raises(Refusal, match="second message"):
        game.server.receive(message)
    with pytest.raises(Refusal, match="out of order or again"):
        game.ask(kind, 0, content)


def test_a_round_is_not_entered_twice() -> None:
    one = member("member 000", 5)
    one.join(make_plan(5, 4, 3, round=3))
    for earlier in (make_plan(5, 4, 3, round=3), make_plan(5, 4, 3, round=3, cohort=1), make_plan(5, 4, 3, round=2)):
        with pytest.raises(Refusal, match="asked for before"):
            one.join(earlier)
    one.join(make_plan(5, 4, 3, round=3, attempt=1))
    one.join(make_plan(5, 4, 3, round=4))
    one.join(make_plan(5, 4, 3, run="another", round=1))
    with pytest.raises(Refusal, match="at most 8"):
        one.join(make_plan(5, 4, 3, round=9, attempt=8))


def test_a_round_that_was_signed_is_not_summed_again_without_somebody() -> None:
    """Two sums of one round that differ in one member would tell what it had."""
    plan = make_plan(5, 4, 3)
    people = [member(name, 5) for name in plan.members]
    game = Game(plan, make_values(plan))
    game.parts = [one.join(plan) for one in people]
    game.play()
    again = make_plan(5, 4, 3, attempt=1)
    for one in people:
        with pytest.raises(Refusal, match="has signed a sum of round 1"):
            one.join(again)
    people[0].join(make_plan(5, 4, 3, round=2))


def test_who_has_signed_is_in_no_other_sum_even_if_never_asked_to_unmask() -> None:
    """A server that had the masks opened by two members could sum the others again, without the one it was after."""
    plan = make_plan(6, 5, 2, quorum=4)
    people = [member(name, 6) for name in plan.members]
    game = Game(plan, make_values(plan))
    game.parts = [one.join(plan) for one in people]
    game.until(Kind.INPUT)
    signed = plan.committee[: plan.rules.quorum].tolist()
    for place in signed:
        game.ask(Kind.CONFIRM, place, game.inbox[plan.members[place]])
    again = make_plan(6, 5, 2, quorum=4, attempt=1)
    for place, one in enumerate(people):
        if place in signed:
            with pytest.raises(Refusal, match="has signed a sum"):
                one.join(again)
        else:
            one.join(again)


def test_a_failure_says_whether_another_attempt_makes_sense() -> None:
    plan = make_plan(7, 6, 4, least_survivors=5, quorum=0)
    for kind, repeat in ((Kind.INPUT, True), (Kind.UNMASK, False)):
        with pytest.raises(TooFew) as failed:
            Game(plan, make_values(plan), dict.fromkeys(range(4), kind)).play()
        assert failed.value.repeat is repeat
    assert not WrongSum("x").repeat


def test_cohorts_and_thresholds_below_the_owners_minimum_are_refused() -> None:
    rules = neighbourhood(30, dropout=0.1, colluding=0.1, least=20).rules
    good = replace(make_plan(30), rules=rules)
    policy = Policy(least_members=30, least_survivors=20, colluding=0.1)
    member("member 000", 30, policy).join(good)
    with pytest.raises(Refusal, match="minimum is 31"):
        member("member 000", 30, Policy(least_members=31)).join(good)
    with pytest.raises(Refusal, match="minimum is 28"):
        member("member 000", 30, Policy(least_survivors=28)).join(good)
    weaker = {"neighbours": 4, "threshold": rules.threshold - 1, "window": 1, "quorum": rules.quorum - 1}
    for name, value in weaker.items():
        weak = replace(rules, **{name: value})
        if name == "neighbours":
            weak = replace(weak, threshold=3, window=2)
        with pytest.raises(Refusal, match=r"do not protect|signatures open a sum"):
            member("member 000", 30, policy).join(replace(good, rules=weak))
    with pytest.raises(Refusal, match="not a member"):
        member("member 031", 32, OPEN).join(good)


def test_a_plan_for_other_noise_than_agreed_is_refused() -> None:
    plan = make_plan(5, 4, 3)
    agreed = Layout((Field("table", (5,), 1.0, noise=0.5),), 5)
    with pytest.raises(Refusal, match="bounds or noise"):
        member("member 000", 5).join(plan, agreed)
    member("member 000", 5).join(plan, plan.layout)


def test_a_list_of_survivors_below_the_minimum_is_refused() -> None:
    plan = make_plan(8, 7, 3, least_survivors=6)
    game = Game(plan, make_values(plan)).until(Kind.INPUT)
    with pytest.raises(TooFew, match="5 contributions are left, 6 are needed"):
        game.parts[0].confirm(bits_of(range(5), 8))
    with pytest.raises(Refusal, match="leaves this member out"):
        game.parts[7].confirm(bits_of(range(7), 8))


def test_members_that_add_nothing_hide_nobody() -> None:
    policy = replace(OPEN, least_members=3, least_survivors=3)
    plan = make_plan(8, 7, 3, least_survivors=6)
    with pytest.raises(Refusal, match="2 of 8 members have trained"):
        member("member 000", 8, policy).join(replace(plan, idle=(0, 1, 2, 3, 4, 5)))
    member("member 000", 8, policy).join(replace(plan, idle=tuple(range(8))))  # a sum of zeros tells nothing
    few = replace(plan, idle=(0, 1, 2, 3))
    game = Game(few, make_values(few))
    game.parts = [member(name, 8, policy).join(few) for name in few.members]
    game.until(Kind.INPUT)
    with pytest.raises(TooFew, match="2 of those are left that have trained, 3 are needed"):
        game.parts[0].confirm(bits_of(range(6), 8))


def two_stories(plan: Plan, stories: list[set[int]], believes: list[int]) -> list[set[int]]:
    """The server tells members different stories and passes on whatever helps it; who answers under which?"""
    game = Game(plan, make_values(plan)).until(Kind.INPUT)
    lists = [bits_of(sorted(story), len(plan.members)) for story in stories]
    signed: dict[int, bytes] = {}
    answered: list[set[int]] = [set(), set()]
    for place, part in enumerate(game.parts):
        with suppress(SecureFailure):
            near = [v for v in plan.neighbours_of(place) if v in stories[believes[place]]]
            agreed = b"".join(game.server._got.inputs[v] for v in near)
            signed[place] = part.confirm(lists[believes[place]] + agreed)
    for place in signed:
        same = [signed[v] for v in sorted(signed) if believes[v] == believes[place]]
        with suppress(SecureFailure):
            game.parts[place].unmask(b"".join(same))
            answered[believes[place]].add(place)
    return answered


@given(st.data())
@settings(max_examples=40)
def test_two_lists_of_survivors_are_not_both_answered(data: st.DataObject) -> None:
    n = data.draw(st.integers(5, 12))
    k = data.draw(st.sampled_from([*range(2, n - 1, 2), n - 1]))
    plan = make_plan(n, k, 2, least_survivors=3)
    stories = [data.draw(st.sets(st.integers(0, n - 1), min_size=3)) for _ in range(2)]
    believes = [data.draw(st.integers(0, 1)) for _ in range(n)]
    if data.draw(st.booleans()):  # each list names those who get it: what a server that splits would do
        stories = [{u for u in range(n) if believes[u] == side} or {0} for side in range(2)]
    answered = two_stories(plan, stories, believes)
    if stories[0] != stories[1]:
        assert not (answered[0] and answered[1])


@pytest.mark.parametrize(("quorum", "split"), [(6, True), (7, False)])
def test_a_quorum_of_half_would_let_the_server_split_a_cohort(quorum: int, split: bool) -> None:
    plan = make_plan(12, 4, 2, least_survivors=4, quorum=quorum)
    order = plan.circle.tolist()
    halves = [set(order[:6]), set(order[6:])]
    answered = two_stories(plan, halves, [0 if place in halves[0] else 1 for place in range(12)])
    assert answered == (halves if split else [set(), set()])


@pytest.mark.parametrize("window", [0, 1])
def test_a_server_may_not_cut_the_circle(window: int) -> None:
    """It calls two times two neighbours gone, and would learn the sums of the two halves between them."""
    plan = make_plan(12, 4, 2, window=window, least_survivors=4)
    order = plan.circle.tolist()
    alive = sorted(set(range(12)) - {order[0], order[1], order[6], order[7]})
    game = Game(plan, make_values(plan)).until(Kind.INPUT)
    content = bits_of(alive, 12) + b"".join(
        game.server._got.inputs[v] for v in plan.neighbours_of(alive[0]) if v in alive
    )
    if window:
        with pytest.raises(TooFew, match="in a row"):
            game.parts[alive[0]].confirm(content)
    else:
        game.parts[alive[0]].confirm(content)


def test_shares_cannot_be_withheld_from_one_member() -> None:
    """The server passes member 0 the shares of two neighbours only, which it calls gone later on.

    Then member 0 has no mask with anyone in the sum; if the others gave out their shares of its own mask's secret, its
    vector would lie open. They do not: its signature is under another list of sharers than theirs.
    """
    plan = make_plan(8, 7, 2, least_survivors=5)

    def relay(kind: Kind, place: int, content: bytes) -> bytes:
        if (kind, place) != (Kind.INPUT, 0):
            return content
        return bits_of([0, 1, 2], 8) + content[1 : 1 + 2 * ENTRY_BYTES]

    game = Game(plan, make_values(plan), relay=relay).until(Kind.SHARE)
    masked = {u: game.ask(Kind.INPUT, u, relay(Kind.INPUT, u, game.inbox[plan.members[u]])) for u in range(8)}
    with pytest.raises(Refusal, match="not that of 'member 000'"):
        game.server.receive(masked[0])
    agreed = [masked[u][-2 * SIGNATURE_BYTES : -SIGNATURE_BYTES] for u in range(8)]
    alive = [0, 3, 4, 5, 6, 7]
    for u in alive:
        content = bits_of(alive, 8) + b"".join(agreed[v] for v in alive if v != u)
        with pytest.raises(Refusal):
            game.parts[u].confirm(content)


def test_nobody_reveals_both_secrets_of_anyone() -> None:
    plan = make_plan(10, 6, 4, least_survivors=5)
    game = Game(plan, make_values(plan), {1: Kind.INPUT, 4: Kind.INPUT, 7: Kind.CONFIRM, 8: Kind.UNMASK})
    game.play()
    seeds, keys = set(), set()
    for kind, place, message in game.transcript.sent:
        if kind is Kind.UNMASK:
            reveal = Unmasking.from_bytes(message[HEADER.size : -SIGNATURE_BYTES])
            seeds |= set(reveal.alive) | {place}
            keys |= set(reveal.gone)
    assert keys == {1, 4}
    assert seeds == set(range(10)) - keys


def test_a_wrong_share_is_left_out_and_a_wrong_secret_refused() -> None:
    plan = make_plan(7, 6, 3, least_survivors=4)
    game = Game(plan, make_values(plan), {6: Kind.UNMASK}).until(Kind.CONFIRM)
    for place in range(6):
        message = game.ask(Kind.UNMASK, place, game.inbox[plan.members[place]])
        reveal = Unmasking.from_bytes(message[HEADER.size : -SIGNATURE_BYTES])
        if place == 0:  # a share that is not the one it was given
            wrong = Unmasking(reveal.secret, {**reveal.alive, 6: bytes(16)}, reveal.gone)
            message = sign(plan, Kind.UNMASK, 0, wrong.to_bytes(), key_of(plan.members[0]))
        if place == 1:
            wrong = Unmasking(bytes(16), reveal.alive, reveal.gone)
            with pytest.raises(Refusal, match="another secret than it shared"):
                game.server.receive(sign(plan, Kind.UNMASK, 1, wrong.to_bytes(), key_of(plan.members[1])))
        game.server.receive(message)
    np.testing.assert_array_equal(game.server.total().total, sum(game.values))


@pytest.mark.parametrize("wrong", ["vector", "checksum", "pair seed"])
def test_a_sum_that_is_wrong_is_not_used(wrong: str) -> None:
    """A member whose masks do not fit (here: on purpose, well signed) spoils the sum; it is thrown away."""
    plan = make_plan(7, 6, 3, least_survivors=4)
    game = Game(plan, make_values(plan), {6: Kind.INPUT}).until(Kind.SHARE)
    for place in range(6):
        message = bytearray(game.ask(Kind.INPUT, place, game.inbox[plan.members[place]]))
        if place == 0 and wrong != "pair seed":
            message[HEADER.size if wrong == "vector" else -2 * SIGNATURE_BYTES - 1] ^= 128
            body = bytes(message[HEADER.size : -SIGNATURE_BYTES])
            message = bytearray(sign(plan, Kind.INPUT, 0, body, key_of(plan.members[0])))
        game.server.receive(bytes(message))
    game.inbox = game.server.close()
    game.step(Kind.CONFIRM)
    for place in range(6):
        message = bytearray(game.ask(Kind.UNMASK, place, game.inbox[plan.members[place]]))
        if place == 0 and wrong == "pair seed":
            reveal = Unmasking.from_bytes(bytes(message[HEADER.size : -SIGNATURE_BYTES]))
            reveal.gone[6] = reveal.gone[6][0], bytes(32)
            message = bytearray(sign(plan, Kind.UNMASK, 0, reveal.to_bytes(), key_of(plan.members[0])))
        game.server.receive(bytes(message))
    with pytest.raises(WrongSum):
        game.server.total()
    with pytest.raises(Refusal):
        game.server.total()


def test_shares_that_restore_another_key_are_not_used() -> None:
    """A member that shares something else than its key and then drops out is found out."""
    plan = make_plan(7, 6, 3, least_survivors=4)
    game = Game(plan, make_values(plan), {6: Kind.INPUT, 5: Kind.UNMASK}).until(Kind.ADVERTISE)
    game.parts[6]._key_secret = bytes(16)
    game.step(Kind.SHARE)
    for kind in (Kind.INPUT, Kind.CONFIRM, Kind.UNMASK):
        game.step(kind)
    with pytest.raises(WrongSum, match="another key than it advertised"):
        game.server.total()


def test_a_public_key_of_small_order_is_refused() -> None:
    plan = make_plan(5, 4, 3)
    game = Game(plan, make_values(plan)).until(Kind.ADVERTISE)
    size = HEADER.size + Advertisement.SIZE + SIGNATURE_BYTES
    weak = sign(plan, Kind.ADVERTISE, 1, Advertisement(bytes(32), bytes(32)).to_bytes(), key_of(plan.members[1]))
    with pytest.raises(Refusal, match="cannot be used"):
        game.parts[0].share(weak + game.inbox[plan.members[0]][size:])


@given(st.binary(max_size=400))
@settings(max_examples=100)
def test_bytes_of_any_kind_are_refused(noise: bytes) -> None:
    plan = make_plan(5, 4, 3)
    with pytest.raises(Refusal):
        Plan.from_bytes(noise)
    with pytest.raises(Refusal):
        Aggregator(plan, directory(5)).receive(noise)


def test_a_plan_in_another_form_is_refused() -> None:
    data = make_plan(5, 4, 3).to_bytes()
    assert Plan.from_bytes(data) == make_plan(5, 4, 3)
    idle = replace(make_plan(5, 4, 3), idle=(1, 3))
    assert Plan.from_bytes(idle.to_bytes()) == idle
    assert idle.digest != make_plan(5, 4, 3).digest
    for places in (b"[]", b"[3,1]", b"[1,1]", b"[5]", b"[-1]", b"[true]", b"[1.0]", b'"13"', b"null", b"1"):
        with pytest.raises(Refusal):
            Plan.from_bytes(idle.to_bytes().replace(b"[1,3]", places))
    for before, after in (
        (b'"round":1', b'"round": 1'),
        (b'"round":1', b'"round":1.0'),
        (b'"round":1', b'"round":true'),
    ):
        with pytest.raises(Refusal):
            Plan.from_bytes(data.replace(before, after))


def test_one_key_for_two_names_is_bad_input() -> None:
    key = public_bytes(new_key(Stream.named(0, "one").bytes))
    with pytest.raises(BadInput, match="same key"):
        Directory(dict.fromkeys(names(2), key))
