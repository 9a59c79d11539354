/**
 * The layout of the maps of stretched L2 by number, apart from that of the other maps: neither changes with the other. What changes the
 * size, the place or the meaning of anything in them gets the next one (CONTRIBUTING, "To change the layout of a map").
 */
export const L2_LAYOUT_VERSION = 2;
