"""Treelet models (Pauls & Klein 2012): trees predicted from small pieces of trees around them."""
