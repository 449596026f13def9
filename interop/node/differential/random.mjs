// Chance that can be repeated: the same seed gives the same choices everywhere.

export class Random {
  #state;

  /** @param {number} seed any integer */
  constructor(seed) {
    // Neighbouring seeds must not give similar choices.
    this.#state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.floor(seed / 2 ** 32);
    for (let turns = 0; turns < 4; turns++) this.#next();
  }

  /** A 32-bit integer (mulberry32). */
  #next() {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }

  /** An integer from 0 up to, not including, `end`. */
  below(end) {
    return Math.floor((this.#next() / 2 ** 32) * end);
  }

  /** An integer from `first` to `last`. */
  between(first, last) {
    return first + this.below(last - first + 1);
  }

  /** True in `percent` of a hundred times. */
  chance(percent) {
    return this.#next() / 2 ** 32 < percent / 100;
  }

  /** One of a list. */
  pick(list) {
    return list[this.below(list.length)];
  }

  /** One of the keys of `{key: weight}`. */
  weighted(weights) {
    const entries = Object.entries(weights).filter(([, weight]) => weight > 0);
    let at = this.below(entries.reduce((sum, [, weight]) => sum + weight, 0));
    for (const [key, weight] of entries) {
      at -= weight;
      if (at < 0) return key;
    }
    throw new Error("no weight is above zero");
  }

  /** A list of `least` to `most` things that `make` makes. */
  list(least, most, make) {
    return Array.from({ length: this.between(least, most) }, (_, at) => make(at));
  }
}
