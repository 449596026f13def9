// JSON Patch by the letter of RFC 6902: what a delta means, whatever a library makes of it.

/**
 * Applies a patch to a copy of `document`.
 *
 * @returns {unknown} the patched copy
 * @throws where an operation cannot be applied; `document` is as it was
 */
export function applyPatch(document, patch) {
  const root = { "": structuredClone(document) };
  for (const operation of patch) apply(root, operation);
  return root[""];
}

function apply(root, { op, path, from, value }) {
  switch (op) {
    case "add":
      return add(root, path, structuredClone(value));
    case "remove":
      return void remove(root, path);
    case "replace":
      read(root, path);
      return write(root, path, structuredClone(value));
    case "test":
      if (!same(read(root, path), value)) fail(`the value at ${path} is another`);
      return;
    case "copy":
      return add(root, path, structuredClone(read(root, from)));
    case "move": {
      if (path.startsWith(`${from}/`)) fail(`${from} cannot move into itself`);
      const moved = read(root, from);
      // A move to where it is changes nothing; the root has nowhere else to go.
      if (path === from) return;
      remove(root, from);
      return add(root, path, moved);
    }
    default:
      fail(`unknown op ${op}`);
  }
}

function read(root, pointer) {
  return locate(root, pointer).reduce(step, root);
}

function add(root, pointer, value) {
  const { parent, key } = place(root, pointer);
  if (!Array.isArray(parent)) return define(parent, key, value);
  const at = key === "-" ? parent.length : index(key);
  if (at > parent.length) fail(`${pointer} is behind the end`);
  parent.splice(at, 0, value);
}

function remove(root, pointer) {
  // What is left of a document without its root.
  if (pointer === "") return void (root[""] = null);
  const { parent, key } = place(root, pointer);
  step(parent, key);
  if (Array.isArray(parent)) parent.splice(index(key), 1);
  else delete parent[key];
}

function write(root, pointer, value) {
  const { parent, key } = place(root, pointer);
  if (Array.isArray(parent)) parent[index(key)] = value;
  else define(parent, key, value);
}

function place(root, pointer) {
  const keys = locate(root, pointer);
  const key = keys.pop();
  const parent = keys.reduce(step, root);
  if (typeof parent !== "object" || parent === null) fail(`${pointer} is inside no container`);
  return { parent, key };
}

function locate(_, pointer) {
  return pointer.split("/").map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function step(parent, key) {
  if (Array.isArray(parent)) {
    const at = index(key);
    if (at < parent.length) return parent[at];
  } else if (typeof parent === "object" && parent !== null && Object.hasOwn(parent, key)) {
    return parent[key];
  }
  return fail(`there is no ${key}`);
}

function index(key) {
  if (!/^(0|[1-9][0-9]*)$/.test(key)) fail(`${key} is no index`);
  return Number(key);
}

/** A member of any name, `__proto__` included. */
function define(object, key, value) {
  Object.defineProperty(object, key, {
    value,
    configurable: true,
    enumerable: true,
    writable: true,
  });
}

/** Equality as RFC 6902 has it: objects in any order, numbers by value. */
export function same(a, b) {
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, at) => same(item, b[at]));
  }
  if (typeof a === "object" && a !== null) {
    if (typeof b !== "object" || b === null || Array.isArray(b)) return false;
    const keys = Object.keys(a);
    return (
      keys.length === Object.keys(b).length &&
      keys.every((key) => Object.hasOwn(b, key) && same(a[key], b[key]))
    );
  }
  return a === b;
}

function fail(why) {
  throw new Error(why);
}
