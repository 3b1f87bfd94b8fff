// Loaded when the first menu or panel opens: with its positioning it is a fifth of what the first screen may weigh.
export { DropdownMenu, Popover } from "radix-ui";
