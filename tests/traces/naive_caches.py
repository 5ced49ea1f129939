"""The cache simulation of docs/model/timing_traced.md 3 written plainly: lists, dictionaries, no compilation."""

from collections import OrderedDict, defaultdict

ROOTS = {16: (0b10011, 13), 32: (0b100101, 15), 64: (0b1000011, 19)}


def residue(power: int, polynomial: int) -> int:
    """Return x^power mod the polynomial over GF(2)."""
    value = 1 << power
    while value.bit_length() >= polynomial.bit_length():
        value ^= polynomial << (value.bit_length() - polynomial.bit_length())
    return value


def l2_set(partition: int, sets: int) -> int:
    bits = sets.bit_length() - 1
    polynomial, count = ROOTS[sets]
    index = (partition >> 7) % sets
    for k in range(count):
        if partition >> (7 + bits + k) & 1:
            index ^= residue(bits + k, polynomial)
    return index


class Lru:
    def __init__(self, ways: int):
        self.ways, self.lines = ways, OrderedDict()

    def hits(self, line: int, sector: int) -> bool:
        if line in self.lines:
            self.lines.move_to_end(line)
            hit = sector in self.lines[line]
            self.lines[line].add(sector)
            return hit
        if len(self.lines) == self.ways:
            self.lines.popitem(last=False)
        self.lines[line] = {sector}
        return False


def sectors(lanes: list[int], width: int, local: bool) -> list[int]:
    reach = min(width, 4) if local else width
    return sorted({a // 32 * 32 for x in lanes for a in (x, x + reach - 1)})


def atomic_sectors(lanes: list[int], width: int) -> list[int]:
    packed: dict[int, list[set[int]]] = defaultdict(list)
    for x in lanes:
        wanted = set(range(x, x + width))
        for transaction in packed[x // 32]:
            if not transaction & wanted:
                transaction |= wanted
                break
        else:
            packed[x // 32].append(wanted)
    return [block * 32 for block in sorted(packed) for _ in packed[block]]


class Naive:
    """Runs ``ctas[cta][warp][index] = None | (pc, sector list)`` and counts."""

    def __init__(self, g):
        self.g = g
        self.l1 = [[Lru(g.l1_ways) for _ in range(g.l1_sets)] for _ in range(g.sms)]
        self.l2 = defaultdict(lambda: Lru(g.l2_ways))
        self.pooled = defaultdict(lambda: [0, 0, 0, 0])
        self.own = defaultdict(lambda: [0, 0, 0, 0])

    def execute(self, sm: int, key: tuple, who: tuple, accesses: list[int]) -> None:
        own = [0, 0, 0, 0]
        for address in accesses:
            line, sector = address // 128, address // 32 % 4
            if self.l1[sm][line % self.g.l1_sets].hits(line, sector):
                own[0] += 1
                continue
            own[1] += 1
            block = address // 256
            rest = block // self.g.channels * 256 + address % 256
            part = block % self.g.channels * 2 + (rest >> 7 & 1)
            partition = (rest >> 8 << 7) | rest & 127
            hit = self.l2[part, l2_set(partition & ~127, self.g.l2_sets)].hits(line, sector)
            own[2 if hit else 3] += 1
        self.own[who] = own
        counts = self.pooled[key]
        counts[own[1] > 0] += 1
        counts[2 + (own[3] > 0)] += 1

    def run(self, ctas: list) -> None:
        waiting, place = list(range(len(ctas))), 0
        resident: list[dict[int, int]] = [{} for _ in range(self.g.sms)]
        while waiting or any(resident):
            while waiting:
                free = [s % self.g.sms for s in range(place, place + self.g.sms)]
                free = [s for s in free if len(resident[s]) < self.g.ctas_per_sm]
                if not free:
                    break
                resident[free[0]][waiting.pop(0)] = 0
                place = free[0] + 1
            finished = False
            while not finished:
                finished = sum(self.round(sm, ctas, resident[sm]) for sm in range(self.g.sms)) > 0

    def round(self, sm: int, ctas: list, resident: dict[int, int]) -> bool:
        finished = []
        for cta in sorted(resident):
            index = resident[cta]
            for warp, instructions in enumerate(ctas[cta]):
                if index < len(instructions) and instructions[index] is not None:
                    pc, accesses = instructions[index]
                    self.execute(sm, (pc, index), (cta, warp, index), accesses)
            if all(index >= len(instructions) for instructions in ctas[cta]):
                finished.append(cta)
            resident[cta] += 1
        for cta in finished:
            del resident[cta]
        return bool(finished)
